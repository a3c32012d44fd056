package classical

import (
	"math"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/realdata"

	"github.com/fhs/go-netcdf/netcdf"
)

// A recording is a file of daily maps and the part of it that a test uses.
type recording struct {
	file, variable string
	log10          bool
	row, col       int // first row and column of the part
	height, width  int // size of the part; 0: all
	frames         int // number of frames to read; 0: all
}

// load reads a recording. Its days are counted from an arbitrary date.
func (r recording) load(t testing.TB) Series {
	t.Helper()
	ds, err := netcdf.OpenFile(realdata.Path(t, r.file), netcdf.NOWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	lat, lon := numbers(t, ds, "lat"), numbers(t, ds, "lon")
	days, sea := numbers(t, ds, "time"), numbers(t, ds, "mask")
	h, w := len(lat), len(lon)
	if r.height > 0 {
		h, w = r.height, r.width
	}
	if r.frames > 0 {
		days = days[:r.frames]
	}
	grid, err := field.NewGrid(lat[r.row:r.row+h], lon[r.col:r.col+w])
	if err != nil {
		t.Fatal(err)
	}
	s := Series{Grid: grid, Sea: make(field.Mask, grid.Len())}
	for c := range s.Sea {
		s.Sea[c] = sea[(r.row+c/w)*len(lon)+r.col+c%w] == 1
	}
	maps, err := ds.Var(r.variable)
	if err != nil {
		t.Fatal(err)
	}
	for f, day := range days {
		values := make([]float32, grid.Len())
		from, size := []uint64{uint64(f), uint64(r.row), uint64(r.col)}, []uint64{1, uint64(h), uint64(w)}
		if err := maps.ReadFloat32Slice(values, from, size); err != nil {
			t.Fatal(err)
		}
		for c, v := range values {
			values[c] = r.value(float64(v))
		}
		at := time.Date(2021, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(day * 24 * float64(time.Hour)))
		s.Frames = append(s.Frames, Frame{Time: at, Values: values})
	}
	return s
}

// value turns a stored number into one that a series may hold. Fill values
// are -999 and 99999, and no sea is that cold or that green.
func (r recording) value(v float64) float32 {
	switch {
	case v < -100 || v > 1000:
		return field.NaN()
	case r.log10 && v < 1e-3: // below the detection limit of every sensor here
		return field.NaN()
	case r.log10:
		return float32(math.Log10(v))
	}
	return float32(v)
}

func numbers(t testing.TB, ds netcdf.Dataset, name string) []float64 {
	t.Helper()
	v, err := ds.Var(name)
	if err != nil {
		t.Fatalf("find %s: %v", name, err)
	}
	n, err := v.Len()
	if err != nil {
		t.Fatal(err)
	}
	kind, err := v.Type()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, n)
	switch kind {
	case netcdf.DOUBLE:
		err = v.ReadFloat64s(out)
	case netcdf.FLOAT:
		err = widen(out, v.ReadFloat32s)
	case netcdf.INT:
		err = widen(out, v.ReadInt32s)
	case netcdf.BYTE:
		err = widen(out, v.ReadInt8s)
	default:
		t.Fatalf("read %s: type %v", name, kind)
	}
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return out
}

func widen[T int8 | int32 | float32](dst []float64, read func([]T) error) error {
	narrow := make([]T, len(dst))
	if err := read(narrow); err != nil {
		return err
	}
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return nil
}
