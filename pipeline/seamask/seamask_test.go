package seamask

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/realdata"

	"github.com/fhs/go-netcdf/netcdf"
)

func TestKnownPlaces(t *testing.T) {
	tests := []struct {
		name     string
		lat, lon float64
		sea      bool
	}{
		{"middle of the Black Sea", 43, 34, true},
		{"Sea of Azov", 46, 36.7, true},
		{"Sea of Marmara", 40.75, 28.2, true},
		{"Bosporus", 41.12, 29.07, true},
		{"Baltic off Gotland", 58, 20, true},
		{"Gulf of Bothnia", 63, 20, true},
		{"Gulf of Guinea", 0, 0, true},
		{"Red Sea", 20, 38.5, true},
		{"Persian Gulf", 27, 51, true},
		{"Hudson Bay", 60, -85, true},
		{"Fiji, on the date line", -18, 180, true},
		{"Gulf of Guinea, counted from 0", 0, 360, true},
		{"Hudson Bay, counted from 0", 60, 275, true},
		{"Arctic Ocean at the pole", 90, 0, true},
		{"Alps", 46.5, 9.5, false},
		{"Sahara", 23, 10, false},
		{"Crimea", 45.3, 34.3, false},
		{"Gotland", 57.5, 18.5, false},
		{"Antarctica at the pole", -90, 0, false},
		{"Caspian, not joined to the ocean", 42, 50.5, false},
		{"Lake Superior", 47.7, -88, false},
		{"Lake Victoria", -1, 33, false},
		{"Death Valley, below sea level", 36.25, -116.8, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := builtin(t, []float64{tt.lat}, []float64{tt.lon})[0]; got != tt.sea {
				t.Errorf("sea is %v, want %v", got, tt.sea)
			}
		})
	}
}

func TestBothLongitudeConventionsAgree(t *testing.T) {
	const n = 720 // half a degree
	lat := axis(30.25, 0.5, 60)
	west := builtin(t, lat, axis(-179.75, 0.5, n))
	east := builtin(t, lat, axis(0.25, 0.5, n))
	for i := range lat {
		for j := range n {
			if west[i*n+j] != east[i*n+(j+n/2)%n] {
				t.Fatalf("lat %g: column %d differs between the conventions", lat[i], j)
			}
		}
	}
}

func TestReversedAxesGiveTheReversedMask(t *testing.T) {
	lat, lon := axis(40, 0.05, 160), axis(26.5, 0.07, 220)
	up := builtin(t, lat, lon)
	down := builtin(t, reversed(lat), reversed(lon))
	differ := 0
	for i := range up {
		if up[i] != down[len(down)-1-i] {
			differ++
		}
	}
	if differ != 0 {
		t.Errorf("%d of %d cells differ", differ, len(up))
	}
}

func TestCoarseCellTakesTheMajorityOfItsMaskCells(t *testing.T) {
	// One cell of 12 x 12 mask cells across the coast of Crimea, counted by
	// hand from the mask cells themselves.
	for _, at := range [][2]float64{{44.5, 33.9}, {45.1, 35.5}, {46.2, 30.9}} {
		var lat, lon []float64
		for k := range 12 {
			lat = append(lat, at[0]+(float64(k)+0.5)/60)
			lon = append(lon, at[1]+(float64(k)+0.5)/60)
		}
		fine := builtin(t, lat, lon)
		want := 2*fine.Count() >= len(fine)
		c := []float64{at[0] + 0.1 - 0.2, at[0] + 0.1, at[0] + 0.1 + 0.2}
		d := []float64{at[1] + 0.1 - 0.2, at[1] + 0.1, at[1] + 0.1 + 0.2}
		if got := builtin(t, c, d)[4]; got != want {
			t.Errorf("cell at %v is sea %v, but %d of its %d mask cells are", at, got, fine.Count(), len(fine))
		}
	}
}

func TestOceanCoversSeventyOnePercentOfTheEarth(t *testing.T) {
	lat, lon := axis(-89.5, 1, 180), axis(-179.5, 1, 360)
	m := builtin(t, lat, lon)
	sea, all := 0.0, 0.0
	for i := range m {
		area := math.Cos(lat[i/len(lon)] * math.Pi / 180)
		all += area
		if m[i] {
			sea += area
		}
	}
	if share := sea / all; math.Abs(share-0.71) > 0.015 {
		t.Errorf("sea share %.3f, want 0.71", share)
	}
}

func TestAgreesWithTheBlackSeaMaskOfOneKilometre(t *testing.T) {
	lat, lon, want := readMask(t, realdata.Path(t, "masks/blk_1km_790x1101_from_globe.nc"))
	got := builtin(t, lat, lon)
	same := 0
	for i := range got {
		if got[i] == want[i] {
			same++
		}
	}
	share := float64(same) / float64(len(got))
	t.Logf("%.2f %% of %d cells agree", 100*share, len(got))
	if share < 0.98 {
		t.Errorf("only %.2f %% of the cells agree", 100*share)
	}
}

func TestErrsOnlyAtTheCoast(t *testing.T) {
	archive, err := zip.OpenReader(realdata.Path(t, "masks/globe_combined_mask_compressed.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	npy, err := archive.Open("mask.npy")
	if err != nil {
		t.Fatal(err)
	}
	defer npy.Close()
	if _, err := io.CopyN(io.Discard, npy, 128); err != nil { // header
		t.Fatal(err)
	}
	d := newDecoder(bytes.NewReader(packed))
	pair := make([]byte, 4*cols)
	wrong, inside := 0, 0
	const north60 = 1800 // rows from the pole to 60 N: fjords and islands
	for r := range north60 {
		if _, err := io.ReadFull(npy, pair); err != nil {
			t.Fatal(err)
		}
		if err := d.nextRow(); err != nil {
			t.Fatalf("row %d: %v", r, err)
		}
		north, south := pair[:2*cols], pair[2*cols:]
		for c := range cols {
			sea := byte(d.row.count(c, c+1))
			n := north[2*c] + north[2*c+1] + south[2*c] + south[2*c+1]
			switch {
			case n == 4*sea:
			case n == 0 || n == 4:
				inside++
			case sea == 1:
				wrong += int(4 - n)
			default:
				wrong += int(n)
			}
		}
	}
	share := float64(wrong) / (4 * north60 * cols)
	t.Logf("%.4f %% of the cells of 1/120 degree differ, all on the coast", 100*share)
	if inside != 0 {
		t.Errorf("%d mask cells away from the coast differ from the source", inside)
	}
	if share > 0.005 {
		t.Errorf("%.4f %% of the source's cells differ", 100*share)
	}
}

func TestPackedRowsComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	made := make([][]bool, 40)
	for r := range made {
		made[r] = make([]bool, cols)
		for c := range made[r] { // blocks, and a row of noise now and then
			made[r][c] = (r/7+c/389)%3 == 0 || r%9 == 0 && rng.IntN(2) == 0
		}
	}
	var code bytes.Buffer
	z, err := flate.NewWriter(&code, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	above := make([]bool, cols)
	for _, row := range made {
		z.Write(appendRuns(nil, above, row))
		above = row
	}
	z.Close()
	d := newDecoder(&code)
	for r, row := range made {
		if err := d.nextRow(); err != nil {
			t.Fatal(err)
		}
		for c, sea := range row {
			if (d.row.count(c, c+1) == 1) != sea {
				t.Fatalf("row %d, column %d came back wrong", r, c)
			}
		}
	}
	if err := d.nextRow(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last row: %v, want EOF", err)
	}
}

func TestPackRefusesAMaskThatEndsEarly(t *testing.T) {
	err := Pack(io.Discard, func() ([]bool, error) { return nil, io.EOF })
	if !errors.Is(err, io.EOF) {
		t.Errorf("no rows: %v, want EOF", err)
	}
}

func TestEmptyGridIsAnError(t *testing.T) {
	if _, err := Builtin(field.Grid{}); err == nil {
		t.Error("no error")
	}
}

func BenchmarkBuiltin(b *testing.B) {
	grids := []struct {
		name     string
		lat, lon []float64
	}{
		{"BlackSea790x1101", axis(40.005, 8.0/790, 790), axis(26.507, 15.5/1101, 1101)},
		{"Global720x1440", axis(-89.875, 0.25, 720), axis(-179.875, 0.25, 1440)},
	}
	for _, g := range grids {
		b.Run(g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				builtin(b, g.lat, g.lon)
			}
		})
	}
}

func builtin(t testing.TB, lat, lon []float64) field.Mask {
	t.Helper()
	g, err := field.NewGrid(lat, lon)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Builtin(g)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func axis(first, step float64, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = first + step*float64(i)
	}
	return x
}

func reversed(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[len(x)-1-i] = v
	}
	return y
}

func readMask(t *testing.T, path string) (lat, lon []float64, sea []bool) {
	t.Helper()
	ds, err := netcdf.OpenFile(path, netcdf.NOWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	read := func(name string, into func(netcdf.Var, uint64) error) {
		v, err := ds.Var(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := v.Len()
		if err == nil {
			err = into(v, n)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("read %s: %w", name, err))
		}
	}
	read("lat", func(v netcdf.Var, n uint64) error { lat = make([]float64, n); return v.ReadFloat64s(lat) })
	read("lon", func(v netcdf.Var, n uint64) error { lon = make([]float64, n); return v.ReadFloat64s(lon) })
	read("sea", func(v netcdf.Var, n uint64) error {
		raw := make([]int8, n)
		sea = make([]bool, n)
		err := v.ReadInt8s(raw)
		for i, b := range raw {
			sea[i] = b == 1
		}
		return err
	})
	return lat, lon, sea
}
