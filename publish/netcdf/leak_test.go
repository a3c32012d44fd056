package netcdf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
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

// The library allocates from one heap, whichever thread is in it. Those that glibc makes
// for further threads begin at a multiple of their size and are reserved up to the next;
// a thread's stack may begin there too. Where Go has its own, addresses are lower.
func TestAllThreadsShareAHeap(t *testing.T) {
	const threads, heapSize, libraries = 8, 64 << 20, 0x7f00_0000_0000
	dir := t.TempDir()
	var group errgroup.Group
	for k := range threads {
		group.Go(func() error {
			runtime.LockOSThread() // and it ends with the goroutine
			return WriteProduct(filepath.Join(dir, strconv.Itoa(k)+".nc"), blackSea())
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	lines := strings.Split(string(maps), "\n")
	for i, line := range lines[:len(lines)-1] {
		from, to, _ := strings.Cut(line, "-")
		at, err := strconv.ParseUint(from, 16, 64)
		end, _, _ := strings.Cut(to, " ")
		reserved := fmt.Sprintf("%s-%x ---p", end, at+heapSize)
		if err == nil && at >= libraries && at%heapSize == 0 && strings.Contains(to, " rw-p ") && strings.HasPrefix(lines[i+1], reserved) {
			t.Errorf("a second heap: %s", line)
		}
	}
}
