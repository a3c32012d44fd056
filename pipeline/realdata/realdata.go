// Package realdata finds the real satellite files that tests and benchmarks
// read.
//
// The files lie in ../shared/data beside the checkout and are not part of the
// repository. Where they are absent a test that asks for one is skipped with
// a message that says so.
package realdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file such as "phytofit/testregion_365d.nc", or
// skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data are not here: put %s into ../shared/data beside the checkout to run this test", name)
	}
	return path
}

// Root returns the root of the checkout.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}
