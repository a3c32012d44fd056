// Package setup_test tries the scripts that make packages and releases.
package setup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Packages of a development version must not keep dpkg from upgrading to the
// release.
func TestPackagesOfADevelopmentSortBeforeTheirRelease(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("there is no dpkg here")
	}
	packaged := func(version ...string) string {
		out, err := exec.Command("./debian-version.sh", version...).Output()
		if err != nil {
			t.Fatalf("debian-version.sh %s: %v", version, err)
		}
		return strings.TrimSpace(string(out))
	}
	ascending := []string{
		"0~4ae611d", // name of packages before there were versions
		packaged("0.1.9"),
		packaged("0.2.0-dev"),
		packaged("0.2.0-dev+g4ae611d"),
		packaged("0.2.0-dev+g4ae611d.dirty"),
		packaged("0.2.0-dev+gffffffe", "20261117015100"),
		packaged("0.2.0-dev+g0000000", "20261117015200"), // a later commit whose name sorts before
		packaged("0.2.0-dev+g0000000.dirty", "20261117015200"),
		packaged("0.2.0-rc.1"),
		packaged("0.2.0", "20261117015300"),
		packaged("0.2.1-dev+g0000000"),
		packaged("0.10.0"),
	}
	for i, newer := range ascending[1:] {
		if older := ascending[i]; exec.Command("dpkg", "--compare-versions", older, "lt", newer).Run() != nil {
			t.Errorf("to dpkg %s is not older than %s", older, newer)
		}
	}
	for _, bad := range []string{"", "4ae611d", "v0.2.0", "0.2.0-dev-1", "0.2.0 x", "0.2.0\n"} {
		if out, err := exec.Command("./debian-version.sh", bad).Output(); err == nil {
			t.Errorf("%q is taken for a version, as %q", bad, out)
		}
	}
}

// A project is a repository of its own in which make builds in no time.
type project struct {
	t   *testing.T
	dir string
}

const projectMake = `
lint: ; @echo linted >>bin/log
test: ; @[ ! -e fail ] && echo tested >>bin/log
build: ; @printf '#!/bin/sh\necho "lacuna %s (go)"\n' "$(TAG)" | sed 's/ v/ /' >bin/lacuna && chmod +x bin/lacuna
deb: build ; @touch "bin/lacuna_$$(bin/lacuna version | cut -d' ' -f2)_all.deb"
image: build ; @touch "bin/lacuna_$$(bin/lacuna version | cut -d' ' -f2)_all.oci.tar"
wheel: build ; @touch "bin/lacuna-$$(bin/lacuna version | cut -d' ' -f2)-py3-none-any.whl"
sbom: build ; @echo {} >bin/lacuna.cdx.json; echo >bin/lacuna.licences.txt
`

func newProject(t *testing.T) project {
	t.Helper()
	for _, tool := range []string{"git", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here", tool)
		}
	}
	p := project{t, t.TempDir()}
	p.write("daemon/version/version.go", "package version\n\nconst release = \"0.2.0\"\n")
	p.write("Makefile", projectMake)
	p.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-20\n")
	p.write(".gitignore", "/bin/\n")
	p.write("bin/log", "")
	p.git("init", "-q")
	p.commit()
	return p
}

func (p project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = p.dir
	// A git hook that runs the tests sets variables for its own repository.
	outer := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GIT_") })
	c.Env = append(outer, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "MAKEFLAGS=",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@localhost", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@localhost")
	return c
}

func (p project) git(args ...string) string {
	p.t.Helper()
	out, err := p.command("git", args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p project) commit() {
	p.t.Helper()
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "x")
}

func (p project) release() (string, error) {
	p.t.Helper()
	script, err := filepath.Abs("release.sh")
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := p.command(script).CombinedOutput()
	return string(out), err
}

func TestAReleaseIsTestedBuiltAndTagged(t *testing.T) {
	p := newProject(t)
	if out, err := p.release(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if tagged, head := p.git("rev-parse", "v0.2.0^{commit}"), p.git("rev-parse", "HEAD"); tagged != head {
		t.Errorf("v0.2.0 is %s, want %s", tagged, head)
	}
	if log, _ := os.ReadFile(filepath.Join(p.dir, "bin/log")); string(log) != "linted\ntested\n" {
		t.Errorf("make did %q before the release, want lint, then tests", log)
	}
	check := p.command("sha256sum", "-c", "SHA256SUMS")
	check.Dir = filepath.Join(p.dir, "bin/release")
	out, err := check.CombinedOutput()
	if want := "lacuna: OK\nlacuna-0.2.0-py3-none-any.whl: OK\nlacuna.cdx.json: OK\nlacuna.licences.txt: OK\nlacuna_0.2.0_all.deb: OK\nlacuna_0.2.0_all.oci.tar: OK\n"; err != nil || string(out) != want {
		t.Errorf("SHA256SUMS: %v, %q, want %q", err, out, want)
	}
	if out, err := p.release(); err == nil || !strings.Contains(out, "tag v0.2.0 already") {
		t.Errorf("a second release of one version: %v\n%s", err, out)
	}
}

func TestAnUnreadyTreeIsNotTagged(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(project)
		says  string
	}{
		"a tree that is not as committed": {func(p project) { p.write("new", "") }, "not as committed"},
		"no section in the changelog": {func(p project) {
			p.write("CHANGELOG.md", "## [Unreleased]\n\n## [0.2.01] - 2026-11-20\n")
			p.commit()
		}, "CHANGELOG.md has no section: ## [0.2.0]"},
		"tests that fail": {func(p project) { p.write("fail", ""); p.commit() }, "Error"},
		"tests that leave something behind": {func(p project) {
			p.write("Makefile", strings.Replace(projectMake, "test: ; @", "test: ; @touch left; ", 1))
			p.commit()
		}, "not as committed"},
		"a program of another version": {func(p project) {
			p.write("Makefile", strings.Replace(projectMake, "$(TAG)", "0.1.0", 1))
			p.commit()
		}, "the program says that it is 0.1.0"},
		"no version": {func(p project) { p.write("daemon/version/version.go", "package version\n"); p.commit() }, "no line"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			c.spoil(p)
			out, err := p.release()
			if err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%v, want a failure that says %q:\n%s", err, c.says, out)
			}
			if tags := p.git("tag"); tags != "" {
				t.Errorf("it is tagged: %s", tags)
			}
		})
	}
}
