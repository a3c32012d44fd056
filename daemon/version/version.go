// Package version is the version of the program, as semantic versioning writes
// it. The release is a constant here; the commit comes from the linker or from the
// version control system.
//
// It does not know the versions of models.
package version

import (
	"cmp"
	"runtime/debug"
)

// release is the next release or, in a build of its tag, this one.
// ops/setup/release.sh reads it from this line.
const release = "0.3.0"

// Set by the linker (see Makefile); empty in other builds.
var (
	buildTag    string // tag of the commit; empty where the tree has uncommitted changes
	buildCommit string // abbreviated hash, with ".dirty" where the tree has uncommitted changes
)

// String returns the version of this build: the release in a build of its tag,
// else a version that sorts before it and names the commit.
func String() string {
	return versionOf(buildTag, cmp.Or(buildCommit, vcsCommit()))
}

func versionOf(tag, commit string) string {
	switch {
	case tag == "v"+release:
		return release
	case commit != "":
		return release + "-dev+g" + commit
	}
	return release + "-dev"
}

// vcsCommit returns the commit that the go command has recorded, for programs
// built without make; empty in tests and where there is no checkout.
func vcsCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var commit, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), shortCommit)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}

// shortCommit is the number of digits of an abbreviated commit, as git shows it in
// a repository of this size.
const shortCommit = 7
