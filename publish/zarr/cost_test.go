package zarr

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/publish"
	"lacuna/publish/netcdf"
)

// fiveYears is the length of the store that another day is appended to.
const fiveYears = 5*365 + 1

// counted counts the objects that pass.
type counted struct {
	objects
	reads, writes, read, written int
}

func (c *counted) Get(ctx context.Context, key string) ([]byte, error) {
	content, err := c.objects.Get(ctx, key)
	c.reads++
	c.read += len(content)
	return content, err
}

func (c *counted) Put(ctx context.Context, key string, content []byte, kind string) error {
	c.writes++
	c.written += len(content)
	return c.objects.Put(ctx, key, content, kind)
}

// rough returns a decoder that makes up products of a grid with five maps, as rough
// as a sea with noise is.
func rough(rows, cols int) func([]byte) (netcdf.File, error) {
	grid := []string{"time", "lat", "lon"}
	f := netcdf.File{
		Dims: []netcdf.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: rows}, {Name: "lon", Len: cols}},
		Vars: []netcdf.Var{
			{Name: "time", Type: "int", Dims: grid[:1], Raw: make([]byte, 4), Attrs: []netcdf.Attr{{Name: "units", Value: "days since 2020-01-01"}}},
			{Name: "lat", Type: "float", Dims: grid[1:2], Raw: ramp(rows, 40)},
			{Name: "lon", Type: "float", Dims: grid[2:], Raw: ramp(cols, 20)},
		},
	}
	for m, name := range []string{"CHL", "CHL_uncertainty", "CHL_lower", "CHL_upper", "flags"} {
		v := netcdf.Var{Name: name, Type: "float", Dims: grid}
		for i := range rows * cols {
			noise := float64(uint32(i*2654435761) >> 16)
			v.Raw = binary.LittleEndian.AppendUint32(v.Raw, math.Float32bits(float32(m)+float32(math.Sin(float64(i)/50)+noise*1e-6)))
		}
		f.Vars = append(f.Vars, v)
	}
	return func([]byte) (netcdf.File, error) { return f, nil }
}

// madeUp returns the product of a day for rough.
func madeUp(file string, day int) publish.Product {
	at := firstDay.AddDate(0, 0, day)
	name := at.Format("20060102")
	return publish.Product{
		Dataset: "sea", Granule: name + ".nc", Name: name + "_l4.nc", Time: at, Revision: 1, Path: file,
		SHA256: hashOf([]byte("product")), Size: 7, Variable: "CHL", Created: at,
	}
}

func madeUpFile(t testing.TB) string {
	file := filepath.Join(t.TempDir(), "product")
	if err := os.WriteFile(file, []byte("product"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestADayMoreCostsTheSameHoweverLongTheStoreIs(t *testing.T) {
	if testing.Short() {
		t.Skip("appends five years of days; leave -short out to run it")
	}
	t.Parallel()
	file := madeUpFile(t)
	o := &counted{objects: &memory{all: map[string][]byte{}, left: -1}}
	s := &Sink{name: "test", objects: o, read: rough(64, 80)}
	publishAll(t, s, madeUp(file, 0))
	first, most := *o, counted{}
	for day := 1; day <= fiveYears; day++ {
		before := *o
		publishAll(t, s, madeUp(file, day))
		if day > fiveYears-2*seriesChunk { // with chunks of series that are nearly full, and nearly empty
			most.writes, most.written = max(most.writes, o.writes-before.writes), max(most.written, o.written-before.written)
			most.reads = max(most.reads, o.reads-before.reads)
		}
	}
	bytes, writes := float64(most.written)/float64(first.written), float64(most.writes)/float64(first.writes)
	t.Logf("a day more: %d objects, %d bytes, %d reads; the first: %d, %d, %d; ratios %.2f, %.2f",
		most.writes, most.written, most.reads, first.writes, first.written, first.reads, writes, bytes)
	if bytes > 1.3 || writes > 1.3 || most.reads > first.reads+20 {
		t.Errorf("a day after five years writes %.2f times the bytes and %.2f times the objects of the first, and reads %d objects", bytes, writes, most.reads)
	}
	before := *o
	revised := madeUp(file, fiveYears/2)
	revised.Revision = 2
	publishAll(t, s, revised)
	if n := o.writes - before.writes; n > 2*first.writes {
		t.Errorf("a revision in the middle writes %d objects, the first day %d", n, first.writes)
	}
}

// BenchmarkAppend appends a day to a folder: to an empty store, and to one of five
// years.
func BenchmarkAppend(b *testing.B) {
	const rows, cols = 790, 1101 // the Black Sea at a kilometre
	file := madeUpFile(b)
	build := &memory{all: map[string][]byte{}, left: -1}
	s := &Sink{name: "test", objects: build, read: rough(rows, cols)}
	publishAll(b, s, madeUp(file, 0))
	s.read = blank(s.read)
	for day := 1; day < fiveYears; day++ {
		publishAll(b, s, madeUp(file, day))
	}
	for _, days := range []int{0, fiveYears} {
		b.Run(fmt.Sprintf("to %d days", days), func(b *testing.B) {
			s := InFolder(b.TempDir())
			s.read = rough(rows, cols)
			day := days
			if days > 0 {
				s = InFolder(dump(b, build))
				s.read = rough(rows, cols)
			}
			for b.Loop() {
				if days == 0 {
					b.StopTimer()
					s.objects = folder{root: b.TempDir()}
					b.StartTimer()
				}
				publishAll(b, s, madeUp(file, day))
				day++
			}
		})
	}
}

// blank returns a decoder of the same layout without values.
func blank(read func([]byte) (netcdf.File, error)) func([]byte) (netcdf.File, error) {
	f, err := read(nil)
	f.Vars = slices.Clone(f.Vars)
	for i, v := range f.Vars {
		if len(v.Dims) == 3 {
			f.Vars[i].Raw = []byte(strings.Repeat(string(fillBytes("float32", "NaN")), len(v.Raw)/4))
		}
	}
	return func([]byte) (netcdf.File, error) { return f, err }
}
