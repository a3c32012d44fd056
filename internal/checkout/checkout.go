// Package checkout finds the checkout that a test runs in, for what lies
// beside its sources: installed tools and real data; and helps tests of whole
// services with programs and folders of their own.
package checkout

import (
	"os"
	"path/filepath"
	"testing"
)

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
