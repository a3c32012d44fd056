package ncfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// ncgen makes a file of the given text.
func ncgen(t *testing.T, cdl string) (path string) {
	t.Helper()
	if _, err := exec.LookPath("ncgen"); err != nil {
		t.Skipf("no ncgen is here, which netcdf-bin has: %v", err)
	}
	path = filepath.Join(t.TempDir(), "f.nc")
	cmd := exec.CommandContext(t.Context(), "ncgen", "-4", "-o", path)
	cmd.Stdin = strings.NewReader(cdl)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, cdl)
	}
	return path
}

// opened maps and opens a file.
func opened(t *testing.T, path string) (*Library, *Header) {
	t.Helper()
	runtime.LockOSThread() // the first look silences HDF5 on this thread
	t.Cleanup(runtime.UnlockOSThread)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Map(int(f.Fd()), info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SelfContained(); err != nil {
		t.Fatal(err)
	}
	l, err := Open(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), m.Close()); err != nil {
			t.Error(err)
		}
	})
	h, err := l.Header("")
	if err != nil {
		t.Fatal(err)
	}
	return l, h
}

// both reads rows of a variable by our own unpacking and by netCDF-C.
func both(t *testing.T, l *Library, h *Header, v, first, rows int) (ours, theirs []byte, unpacked bool) {
	t.Helper()
	n := int(h.Bytes(v)) / h.Shape(v)[0] * rows
	ours, theirs = bytes.Repeat([]byte{0xee}, n), make([]byte, n)
	if s := l.stored(v, h.Shape(v)); s != nil {
		unpacked = s.read(first, rows, ours)
	}
	l.known[v] = nil
	if err := l.Read(v, h.Shape(v), first, rows, theirs); err != nil {
		t.Fatalf("rows %d, %d of them, of %v: %v", first, rows, h.Shape(v), err)
	}
	return ours, theirs, unpacked
}

func TestUnpackedNumbersAreThoseOfNetCDF(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		rank := 1 + r.IntN(4)
		var dims, names, sides []string
		var shape []int
		cells := 1
		for d := range rank {
			n := 1 + r.IntN(9)
			side := max(1+r.IntN(n), n/3) // few enough chunks in all
			shape, cells = append(shape, n), cells*n
			dims, names, sides = append(dims, fmt.Sprintf("d%d = %d;", d, n)), append(names, fmt.Sprintf("d%d", d)), append(sides, fmt.Sprint(side))
		}
		typ := []string{"byte", "ubyte", "short", "ushort", "int", "uint", "int64", "uint64", "float", "double"}[r.IntN(10)]
		numbers := make([]string, cells)
		for i := range numbers {
			numbers[i] = fmt.Sprint(r.IntN(120))
		}
		cdl := fmt.Sprintf("netcdf f {dimensions: %s variables: %s v(%s); v:_ChunkSizes = %s; v:_DeflateLevel = %d; v:_Shuffle = %q; data: v = %s;}",
			strings.Join(dims, " "), typ, strings.Join(names, ", "), strings.Join(sides, ", "), 1+r.IntN(9), []string{"true", "false"}[r.IntN(2)], strings.Join(numbers, ", "))
		t.Run("", func(t *testing.T) { // netCDF-C may have one file in memory open
			l, h := opened(t, ncgen(t, cdl))
			if !slices.Equal(h.Shape(0), shape) {
				t.Fatalf("the shape is %v, want %v", h.Shape(0), shape)
			}
			first := r.IntN(shape[0])
			ours, theirs, unpacked := both(t, l, h, 0, first, 1+r.IntN(shape[0]-first))
			if !unpacked || !bytes.Equal(ours, theirs) {
				t.Fatalf("unpacked here (%t): %.40v, by netCDF-C: %.40v, of\n%.300s", unpacked, ours, theirs, cdl)
			}
		})
	}
}

// What is stored in another way is left to netCDF-C, and never taken for what it is not.
func TestWhatIsStoredInAnotherWayIsLeftToNetCDF(t *testing.T) {
	for what, cdl := range map[string]string{
		"contiguous":             `netcdf f {dimensions: x = 4; variables: float v(x); v:_Storage = "contiguous"; data: v = 1, 2, 3, 4;}`,
		"not packed":             `netcdf f {dimensions: x = 4; variables: float v(x); v:_ChunkSizes = 2; data: v = 1, 2, 3, 4;}`,
		"with a checksum":        `netcdf f {dimensions: x = 4; variables: float v(x); v:_ChunkSizes = 2; v:_DeflateLevel = 1; v:_Fletcher32 = "true"; data: v = 1, 2, 3, 4;}`,
		"most significant first": `netcdf f {dimensions: x = 4; variables: float v(x); v:_ChunkSizes = 2; v:_DeflateLevel = 1; v:_Endianness = "big"; data: v = 1, 2, 3, 4;}`,
		"under another name":     `netcdf f {dimensions: v = 3; x = 2; variables: float v(x, v); v:_ChunkSizes = 1, 3; v:_DeflateLevel = 1; data: v = 1, 2, 3, 4, 5, 6;}`,
	} {
		t.Run(what, func(t *testing.T) {
			l, h := opened(t, ncgen(t, cdl))
			v := h.Find("v")
			if _, _, unpacked := both(t, l, h, v, 0, h.Shape(v)[0]); unpacked {
				t.Error("it was unpacked here")
			}
		})
	}
}

func TestADamagedChunkIsNotUnpacked(t *testing.T) {
	path := ncgen(t, `netcdf f {dimensions: x = 64; variables: float v(x); v:_ChunkSizes = 64; v:_DeflateLevel = 9; data: v = `+strings.Repeat("1.5, 2.25, 7, ", 21)+`9;}`)
	dst := make([]byte, 256)
	var at uint64
	t.Run("sound", func(t *testing.T) {
		l, h := opened(t, path)
		s := l.stored(0, h.Shape(0))
		if s == nil || len(s.pieces) != 1 || !s.read(0, 64, dst) {
			t.Fatalf("the chunk of %+v was not unpacked", s)
		}
		at = uint64(s.pieces[0].at + s.pieces[0].size/2)
		s.pieces[0].size = 1 << 40
		if s.read(0, 64, dst) {
			t.Error("a chunk beyond the end of the file was unpacked")
		}
		s.pieces = nil
		if s.read(0, 64, dst) {
			t.Error("a chunk that was never written was unpacked")
		}
	})
	raw, err := os.ReadFile(path)
	if err != nil || at == 0 {
		t.Fatal(at, err)
	}
	raw[at] ^= 0x55
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("damaged", func(t *testing.T) {
		l, h := opened(t, path)
		if s := l.stored(0, h.Shape(0)); s == nil || s.read(0, 64, dst) {
			t.Error("a damaged chunk was unpacked")
		}
		if b := (*BadGranule)(nil); !errors.As(l.Read(0, h.Shape(0), 0, 64, dst), &b) {
			t.Error("the damage is no fault of the file")
		}
	})
}
