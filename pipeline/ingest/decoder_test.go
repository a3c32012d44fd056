package ingest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A decoder stands in for its command line, and for no other: of one that always fails
// every granule is read then. One that does not run changes nothing.
func TestADecoderStandsInForItsCommandLine(t *testing.T) {
	built := filepath.Join(t.TempDir(), "decoder")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, "./cmd/decoder").CombinedOutput(); err != nil {
		t.Fatalf("build the decoder: %v\n%s", err, out)
	}
	program, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	granule := fixture(t, "nc4", "plankton")
	want := mustRead(t, granule, Options{})
	t.Cleanup(func() { stand.Store(nil) })
	file := func(path string) func() (string, error) { return func() (string, error) { return path, nil } }
	for _, tt := range []struct {
		what      string
		instead   string // of this child
		find      func() (string, error)
		child     string // is asked
		wantsFail bool
	}{
		{"from memory", "exit", InMemory(program), "exit", false},
		{"from a file", "exit", file(built), "exit", false},
		{"for another", "exit", file(built), "kill", true},
		{"of garbage", "decode", InMemory([]byte("\x7fELF and no more")), "decode", false},
		{"that fails", "decode", file("/bin/false"), "decode", false},
		{"that is nowhere", "decode", func() (string, error) { return "", errors.New("none") }, "decode", false},
		{"that does not run, for a child that fails", "exit", file("/bin/false"), "exit", true},
	} {
		DecodeBy([]string{self, tt.instead}, tt.find)
		r := reader(t, tt.child)
		for range 3 { // the third is read by a spare
			got, err := r.Read(t.Context(), granule, Options{})
			switch {
			case (err != nil) != tt.wantsFail:
				t.Errorf("a decoder %s: %v", tt.what, err)
			case err == nil && (got.SHA256 != want.SHA256 || len(got.Fields) != len(want.Fields)):
				t.Errorf("a decoder %s reads %+v, want %+v", tt.what, got, want)
			}
		}
	}
}

// What is in memory cannot be changed by whoever is able to open it.
func TestADecoderInMemoryIsSealed(t *testing.T) {
	path, err := InMemory([]byte("program"))()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("another"), 0); err == nil {
		t.Error("it can be written")
	}
	if err := f.Truncate(3); err == nil {
		t.Error("it can be cut")
	}
}
