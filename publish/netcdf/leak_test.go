package netcdf

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The libraries below keep nothing of the products that were read: a daemon that did so
// for a year would grow.
func TestReadingAProductLeavesNothingBehind(t *testing.T) {
	path, p := filepath.Join(t.TempDir(), "product.nc"), blackSea()
	if err := WriteProduct(path, p); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := newest()
	for range 3 {
		if _, err := Read(image); err != nil {
			t.Fatal(err)
		}
	}
	if n := closeLists(last); n > 0 {
		t.Errorf("three reads have left %d property lists", n)
	}
	if err := WriteProduct(path, p); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, image) {
		t.Errorf("the same product is another file after a read: %v", err)
	}
	last = newest()
	if err := WriteProduct(path, p); err != nil {
		t.Fatal(err)
	}
	if n := closeLists(last); n > 0 {
		t.Errorf("a product that was written has left %d property lists", n)
	}
}
