package roofline

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"lacuna/internal/cdl"
	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish/disk"
	"lacuna/publish/netcdf"
)

// stage is a part of the work on one granule: what it needs at least, and how it is
// done.
type stage struct {
	name  string
	bytes float64 // that go through memory at least once, in and out
	flops float64
	hash  float64 // bytes that are hashed
	disk  float64 // bytes that are synced

	products float64 // operations of an engine
	device   bool    // that engine is a GPU, whose time is that of the clock

	run func() error
}

// bench is a granule on a grid, with all that the stages need.
type bench struct {
	height, width int
	folder        string
	file          netcdf.File // its content
	reader        *ingest.Reader
}

func newBench(height, width int, folder string, child []string) (bench, error) {
	reader, err := ingest.NewReader(ingest.DefaultConfig(), child)
	return bench{height: height, width: width, folder: folder, file: granule(height, width, 0), reader: reader}, err
}

// stages returns the stages in the order in which a granule meets them.
func (b bench) stages(ctx context.Context) ([]stage, error) {
	path := filepath.Join(b.folder, "20240326_granule.nc")
	if err := netcdf.Write(path, b.file); err != nil {
		return nil, err
	}
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	cells, size := float64(b.height*b.width), float64(len(packed))
	series := b.series()
	oi := classical.DefaultOI(series.Grid)
	solves, n := cells/float64(oi.Spacing*oi.Spacing), float64(oi.Neighbours)
	written := filepath.Join(b.folder, "written.nc")
	store := disk.Store{Root: filepath.Join(b.folder, "products")}
	revision := 0
	return []stage{
		{name: "hashing", bytes: size, hash: size, run: func() error { sha256.Sum256(packed); return nil }},
		{name: "reading", bytes: size + 4*cells, hash: size, run: func() error {
			_, err := b.reader.Read(ctx, path, ingest.Options{Variable: "CHL"})
			return err
		}},
		{
			// A solve is a Cholesky factor and two substitutions of its neighbours.
			name: "OI", bytes: 4 * cells * float64(len(series.Frames)+2), flops: solves * (n*n*n/3 + 4*n*n),
			run: func() error {
				_, err := oi.FillContext(ctx, series, len(series.Frames)-1, nil)
				return err
			},
		},
		{name: "writing", bytes: 4*cells + size, disk: size, run: func() error { return netcdf.Write(written, b.file) }},
		{name: "publishing", bytes: 2 * size, hash: size, disk: size, run: func() error {
			revision++
			item := disk.Item{Dataset: "roofline", Granule: "granule", Name: "granule.nc", Time: day(0), Revision: revision}
			_, err := store.Put(ctx, item, func(path string) error { return os.WriteFile(path, packed, 0o644) })
			return err
		}},
	}, nil
}

func day(n int) time.Time { return time.Date(2024, 3, 26+n, 0, 0, 0, 0, time.UTC) }

// seriesDays is a window as the default has it: ten days back and the day itself.
const seriesDays = 11

func (b bench) series() classical.Series {
	grid := field.Grid{Lat: line(40, 0.01, b.height), Lon: line(27, 0.014, b.width)}
	s := classical.Series{Grid: grid}
	for n := range seriesDays {
		s.Frames = append(s.Frames, classical.Frame{Time: day(n - seriesDays + 1), Values: seen(b.height, b.width, n)})
	}
	return s
}

func line(from, step float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = from + step*float64(i)
	}
	return all
}

// seen is a smooth field that drifts, with two thirds of it under clouds.
func seen(height, width, n int) []float32 {
	all := make([]float32, height*width)
	for i := range all {
		y, x, t := float64(i/width)/60, float64(i%width)/60, float64(n)
		all[i] = float32(0.3*math.Sin(x+t/5)*math.Cos(2*y) + 0.02*math.Sin(97*x+61*y*t))
		if math.Sin(1.3*y+t)+math.Cos(0.7*x+y-2*t) < 0.4 {
			all[i] = field.NaN()
		}
	}
	return all
}

// granule is the content of a file of one day.
func granule(height, width, n int) netcdf.File {
	values := seen(height, width, n)
	for i, v := range values {
		if values[i] = float32(math.Pow(10, float64(v))); math.IsNaN(float64(v)) {
			values[i] = -999
		}
	}
	text := func(pairs ...string) (all []cdl.Attr) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, cdl.Attr{Name: pairs[i], Value: pairs[i+1]})
		}
		return all
	}
	return netcdf.File{
		Dims: []cdl.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: height}, {Name: "lon", Len: width}},
		Vars: []cdl.Var{
			{Name: "time", Type: "double", Dims: []string{"time"}, Raw: raw([]float64{float64(day(n).Unix())}), Attrs: text("standard_name", "time", "units", "seconds since 1970-01-01 00:00:00")},
			{Name: "lat", Type: "double", Dims: []string{"lat"}, Raw: raw(line(40, 0.01, height)), Attrs: text("standard_name", "latitude", "units", "degrees_north")},
			{Name: "lon", Type: "double", Dims: []string{"lon"}, Raw: raw(line(27, 0.014, width)), Attrs: text("standard_name", "longitude", "units", "degrees_east")},
			{
				Name: "CHL", Type: "float", Dims: []string{"time", "lat", "lon"}, Raw: raw(values),
				Attrs: append(text("standard_name", "mass_concentration_of_chlorophyll_a_in_sea_water", "units", "milligram m^-3"), cdl.Attr{Name: "_FillValue", Value: []float32{-999}}),
			},
		},
		Attrs: text("Conventions", "CF-1.8", "title", fmt.Sprintf("%dx%d", height, width)),
	}
}

func raw[T float32 | float64](numbers []T) []byte {
	out, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic(err) // numbers have a size
	}
	return out
}
