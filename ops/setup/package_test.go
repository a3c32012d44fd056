package setup_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// release is the version in daemon/version/version.go, the only place that has it.
func release(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^const release = "(.*)"$`).FindStringSubmatch(text(t, "../../daemon/version/version.go"))
	if found == nil {
		t.Fatal("daemon/version/version.go names no release")
	}
	return found[1]
}

// linked returns the program as a build of a tag links it; of none with an empty
// one.
func linked(t *testing.T, tag string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("links the program; leave -short out to run it")
	}
	program := filepath.Join(t.TempDir(), "lacuna")
	output(t, "go", "build", "-ldflags", "-s -w -X lacuna/daemon/version.buildTag="+tag+" -X lacuna/daemon/version.buildCommit=abc1234", "-o", program, "lacuna/daemon/cmd/lacuna")
	return program
}

// The number of the version is written once. What a build of its tag says and
// makes has that number: the program, its products, its requests, the packages.
func TestEverythingSaysOneVersion(t *testing.T) {
	number := release(t)
	program := linked(t, "v"+number)
	if said := strings.Fields(output(t, program, "version"))[1]; said != number {
		t.Fatalf("the program is %s, want %s", said, number)
	}
	dir := t.TempDir()
	granule := strings.TrimSpace(output(t, program, "simulate", "-o", dir, "--days", "1", "--grid", "24x32"))
	product := strings.TrimSpace(output(t, program, "fill", granule, "-o", dir, "--model", "oi"))
	if header := output(t, "ncdump", "-h", product); !strings.Contains(header, `:lacuna_version = "`+number+`"`) {
		t.Errorf("the product does not say version %s:\n%s", number, header)
	}
	if agent := agentOf(t, program); agent != "lacuna/"+number {
		t.Errorf("an archive is asked by %q, want lacuna/%s", agent, number)
	}
	deb := packed(t, program)
	if got := field(t, deb, "Version"); got != number {
		t.Errorf("the Debian package is %s, want %s", got, number)
	}
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" {
		t.Skip("the Python package was not asked: set LACUNA_PYTHON, or run make test, which installs one")
	}
	setup := exec.Command(python, "setup.py", "--version")
	setup.Dir, setup.Env = "../../python", append(os.Environ(), "LACUNA_VERSION="+number, "LACUNA_WITHOUT_PROGRAM=1")
	if out, err := setup.Output(); err != nil || strings.TrimSpace(string(out)) != number {
		t.Errorf("the Python package is %q (%v), want %s", out, err, number)
	}
	if readme := text(t, "../../README.md"); !strings.Contains(readme, "Version "+number) {
		t.Errorf("README.md does not speak of version %s", number)
	}
}

// agentOf returns the User-Agent that the program shows to a web archive.
func agentOf(t *testing.T, program string) string {
	t.Helper()
	agents := make(chan string, 100)
	archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		http.NotFound(w, r)
	}))
	defer archive.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "lacuna.yaml")
	yaml := "state_dir: " + dir + "/state\nproducts_dir: " + dir + "/products\nmanners: {retry: {attempts: 1}}\n" +
		"datasets:\n  - name: sea\n    archive: {type: http, http: {url: " + archive.URL + "/}}\n"
	if err := os.WriteFile(config, []byte(yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command(program, "check", "--config", config, "--online").CombinedOutput() // there is nothing in it, which is a fault
	select {
	case agent := <-agents:
		return agent
	default:
		t.Fatalf("the archive was not asked:\n%s", out)
		return ""
	}
}

// The package of a development is older than its release to dpkg, needs the
// system's NetCDF and brings libonnxruntime, which the program in it finds.
func TestADebianPackageBringsWhatTheSystemHasNot(t *testing.T) {
	deb := packed(t, linked(t, ""))
	number := field(t, deb, "Version")
	if exec.Command("dpkg", "--compare-versions", number, "lt", release(t)).Run() != nil || !strings.Contains(number, "gabc1234") {
		t.Errorf("version %s of a development is not before %s, or does not name its commit", number, release(t))
	}
	if depends := field(t, deb, "Depends"); !strings.Contains(depends, "libnetcdf") || !strings.Contains(depends, "libstdc++6") || !strings.Contains(depends, "procps") {
		t.Errorf("it depends on %q, want NetCDF and what libonnxruntime loads", depends)
	}
	root := t.TempDir()
	output(t, "dpkg-deb", "-x", deb, root)
	engines := exec.Command(filepath.Join(root, "usr/bin/lacuna"), "engines")
	engines.Env = []string{"HOME=" + root}
	out, err := engines.CombinedOutput()
	if want := filepath.Join(root, "usr/lib/lacuna/libonnxruntime.so"); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("engines: %v, want %s in:\n%s", err, want, out)
	}
	if licences := text(t, filepath.Join(root, "usr/share/doc/lacuna/licences.txt")); !strings.Contains(licences, "Apache License") {
		t.Error("the package has no licences")
	}
}

// packed returns a Debian package of the program.
func packed(t *testing.T, program string) string {
	t.Helper()
	runtime := os.Getenv("LACUNA_ONNXRUNTIME")
	if _, err := exec.LookPath("dpkg-deb"); err != nil || runtime == "" {
		t.Skip("there is no dpkg-deb here, or no libonnxruntime: LACUNA_ONNXRUNTIME names none")
	}
	dir := t.TempDir()
	deb := exec.Command("ops/setup/deb.sh", program, runtime, "LICENSE", dir)
	deb.Dir, deb.Env = "../..", append(os.Environ(), "LACUNA_DEB_COMPRESSION=none")
	if out, err := deb.CombinedOutput(); err != nil {
		t.Fatalf("deb.sh: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "lacuna_*.deb"))
	if err != nil || len(files) != 1 {
		t.Fatalf("packages %q, %v", files, err)
	}
	return files[0]
}

func field(t *testing.T, deb, name string) string {
	t.Helper()
	return strings.TrimSpace(output(t, "dpkg-deb", "-f", deb, name))
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
