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

	"lacuna/internal/checkout"
)

// Path returns the path of a file such as "phytofit/testregion_365d.nc", or
// skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(checkout.Root(t), "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data are not here: put %s into ../shared/data beside the checkout to run this test", name)
	}
	return path
}
