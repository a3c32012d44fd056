package ncfile

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

// brokenDisk fails from a number of reads on.
type brokenDisk struct {
	io.ReaderAt
	good int
}

func (d *brokenDisk) ReadAt(p []byte, at int64) (int, error) {
	if d.good == 0 {
		return 0, syscall.EIO
	}
	d.good--
	return d.ReaderAt.ReadAt(p, at)
}

// A granule is not set aside because the disk that it lies on cannot be read.
func TestADiskThatFailsSaysNothingAboutAGranule(t *testing.T) {
	content := hdf5Magic + "\x02\x08\x08\x00" + strings.Repeat("\x00", 200)
	for good := range 3 {
		err := Sniff(&brokenDisk{strings.NewReader(content), good}, int64(len(content)))
		var bad *BadGranule
		if !errors.Is(err, syscall.EIO) || errors.As(err, &bad) {
			t.Errorf("after %d reads: %v, want the error of the disk", good, err)
		}
	}
}
