// Package version says which version of the program this is. The linker and the
// version control system know the commit; the number is written here.
package version

import (
	"cmp"
	"runtime/debug"
)

// release is the version that is in the making or, in a build of its tag, the
// one that is out. ops/setup/release.sh reads it from this line.
const release = "0.2.0"

// What the linker sets (see Makefile); empty where nothing did.
var (
	buildTag    string // of the commit, where the tree is as committed
	buildCommit string // abbreviated, with ".dirty" where the tree is not as committed
)

// String returns the version of this build: that of the release in a build of
// its tag, else one that sorts before it and names the commit.
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

// vcsCommit returns what the go command knows of the commit, for programs that
// were built without make; empty in tests and where there is no checkout.
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

// shortCommit is how many digits name a commit: as many as git shows in a
// repository of this size.
const shortCommit = 7
