package checkout_test

import (
	"os"
	"path/filepath"
	"testing"

	"lacuna/internal/checkout"
)

func TestRootHoldsThisPackage(t *testing.T) {
	if _, err := os.Stat(filepath.Join(checkout.Root(t), "internal", "checkout", "checkout_test.go")); err != nil {
		t.Error(err)
	}
}
