// Package golden compares the output of a test with a reviewed file.
//
// It is imported by tests only, and gives them the flag -update.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Compare compares got with a file below testdata; with -update it writes the
// file.
func Compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test -update to make it", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test -update if this is meant\n got: %s\nwant: %s", path, got, want)
	}
}
