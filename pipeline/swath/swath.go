// Package swath bins the pixels of swaths to a regular grid: for each cell the
// mean of the pixels in it, their number, and the standard error of the mean.
//
// Means are taken in the space of a transform, so that those of chlorophyll are
// geometric. The error of a cell is that of its pixels over the root of their
// number: the spread of the pixels within a cell, or the error that the input gives
// them where that is larger. Errors that all pixels of a pass share are in neither.
//
// Package swath is pure. It knows nothing of files but their description.
package swath

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

// NewGrid returns the regular grid of a box in degrees, with cells of a step. Its
// east may lie beyond 180. Rows run from the north.
func NewGrid(west, south, east, north, step float64) (field.Grid, error) {
	if east <= west {
		east += 360
	}
	height, width := int(math.Round((north-south)/step)), int(math.Round((east-west)/step))
	if !(step > 0) || height < 2 || width < 2 || height > mostLines || width > mostLines {
		return field.Grid{}, fmt.Errorf("cells of %g degrees make a grid of %d×%d, must be 2×2 to %d×%d", step, height, width, mostLines, mostLines)
	}
	lat, lon := make([]float64, height), make([]float64, width)
	for i := range lat {
		lat[i] = north - step*(float64(i)+0.5)
	}
	for j := range lon {
		lon[j] = west + step*(float64(j)+0.5)
	}
	return field.NewGrid(lat, lon)
}

const mostLines = 40_000

// Bins are the pixels of one day so far, by the cells of a grid.
type Bins struct {
	grid       field.Grid
	transform  field.Transform
	south      []float64 // edges of the rows, ascending
	west       []float64 // edges of the columns, likewise
	down, back bool      // rows run from the north; columns from the east
	count      []int32
	mean       []float64 // in the space of the transform
	squares    []float64 // sum of the squared deviations from the mean
	own        []float64 // sum of the squared errors that the input gives
}

// NewBins returns empty bins of a grid of latitudes and longitudes, at least two of
// each, evenly spaced or not.
func NewBins(grid field.Grid, tr field.Transform) *Bins {
	n := grid.Len()
	b := &Bins{
		grid: grid, transform: tr,
		count: make([]int32, n), mean: make([]float64, n), squares: make([]float64, n), own: make([]float64, n),
	}
	b.south, b.down = edges(grid.Lat)
	b.west, b.back = edges(grid.Lon)
	return b
}

// edges returns the edges between the centres of an axis and beyond its ends, from
// the least, and whether the axis descends.
func edges(centres []float64) (out []float64, descends bool) {
	x := slices.Clone(centres)
	if descends = x[0] > x[1]; descends {
		slices.Reverse(x)
	}
	n := len(x)
	out = append(out, x[0]-(x[1]-x[0])/2)
	for i := 1; i < n; i++ {
		out = append(out, (x[i-1]+x[i])/2)
	}
	return append(out, x[n-1]+(x[n-1]-x[n-2])/2), descends
}

// Bytes is the memory that the bins of a cell take.
const Bytes = 28

// Add adds the pixels of a map whose grid has a plane; NaN is none. Errors, in the
// space of the transform, may be nil. It returns how many lie on the grid.
func (b *Bins) Add(f field.Field, errors []float32) (added int) {
	x := make([]float32, len(f.Values))
	b.transform.Forward(x, f.Values)
	for p, v := range x {
		c := b.cell(f.Grid.Plane.Lat[p], f.Grid.Plane.Lon[p])
		if c < 0 || v != v || math.IsInf(float64(v), 0) {
			continue
		}
		added++
		b.count[c]++
		off := float64(v) - b.mean[c]
		b.mean[c] += off / float64(b.count[c]) // Welford's update
		b.squares[c] += off * (float64(v) - b.mean[c])
		if errors != nil && errors[p] == errors[p] {
			b.own[c] += float64(errors[p]) * float64(errors[p])
		}
	}
	return added
}

// cell returns the cell that a place lies in, or -1.
func (b *Bins) cell(lat, lon float64) int {
	h, w := b.grid.Height(), b.grid.Width()
	around := math.Mod(lon-b.west[0], 360)
	if around < 0 {
		around += 360
	}
	row := sort.SearchFloat64s(b.south, lat) - 1
	col := sort.Search(len(b.west), func(j int) bool { return b.west[j] > b.west[0]+around }) - 1
	if !(lat > b.south[0]) || row >= h || col < 0 || col >= w || around != around { // NaN too
		return -1
	}
	if b.down {
		row = h - 1 - row
	}
	if b.back {
		col = w - 1 - col
	}
	return row*w + col
}

// priorPixels is how many pixels the spread within all cells counts for beside
// those of a cell: the spread of two or three pixels alone says little.
const priorPixels = 4

// Maps returns the mean of each cell in physical units, the standard error of the
// mean in the space of the transform, both NaN where there is none, and the number
// of pixels.
func (b *Bins) Maps() (values, errors []float32, count []int32) {
	var all, free float64
	for c, n := range b.count {
		if n > 1 {
			all, free = all+b.squares[c], free+float64(n-1)
		}
	}
	common := math.NaN() // variance within a cell
	if free > 0 {
		common = all / free
	}
	values, errors = make([]float32, len(b.count)), make([]float32, len(b.count))
	for c, n := range b.count {
		values[c], errors[c] = field.NaN(), field.NaN()
		if n == 0 {
			continue
		}
		values[c] = float32(b.mean[c])
		variance := (b.squares[c] + priorPixels*common) / (float64(n-1) + priorPixels)
		if given := b.own[c] / float64(n); !(variance >= given) && given > 0 {
			variance = given
		}
		errors[c] = float32(math.Sqrt(variance / float64(n))) // NaN where nothing is known
	}
	b.transform.Inverse(values, values)
	return values, errors, b.count
}

// A Variable is what a file says of the quantity that was binned.
type Variable struct{ Name, StandardName, LongName, Units string }

// File describes the Level-3 file of a day. Its time is noon.
func (b *Bins) File(v Variable, day time.Time, history string) cdl.File {
	values, errors, count := b.Maps()
	noon := day.UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	maps := []string{"time", "lat", "lon"}
	text := func(name, value string) cdl.Attr { return cdl.Attr{Name: name, Value: value} }
	fill := cdl.Attr{Name: "_FillValue", Value: []float32{missing}}
	data := []cdl.Attr{
		fill, text("long_name", v.LongName), text("units", v.Units), text("cell_methods", "lat: lon: mean"),
		text("ancillary_variables", v.Name+"_error "+v.Name+"_count"),
	}
	number := []cdl.Attr{text("long_name", "number of pixels in the cell"), text("units", "1")}
	fault := []cdl.Attr{fill, text("long_name", "standard error of the mean of "+v.Name), text("units", v.Units)}
	if b.transform.Log10 {
		fault[1].Value, fault[2].Value = "standard error of the mean of log10 of "+v.Name, "1"
		data[3].Value = "lat: lon: mean (of the logarithm)"
	}
	if v.StandardName != "" {
		data = append(data, text("standard_name", v.StandardName))
		number = append(number, text("standard_name", v.StandardName+" number_of_observations"))
		if !b.transform.Log10 {
			fault = append(fault, text("standard_name", v.StandardName+" standard_error"))
		}
	}
	return cdl.File{
		Dims: []cdl.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: b.grid.Height()}, {Name: "lon", Len: b.grid.Width()}},
		Vars: []cdl.Var{
			newVar("time", []string{"time"}, []int32{int32(noon.Sub(time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Second)}, []cdl.Attr{
				text("standard_name", "time"), text("long_name", "day of the passes"), text("units", "seconds since 1981-01-01"), text("calendar", "standard"), text("axis", "T"),
			}),
			newVar("lat", []string{"lat"}, b.grid.Lat, []cdl.Attr{text("standard_name", "latitude"), text("long_name", "latitude"), text("units", "degrees_north"), text("axis", "Y")}),
			newVar("lon", []string{"lon"}, b.grid.Lon, []cdl.Attr{text("standard_name", "longitude"), text("long_name", "longitude"), text("units", "degrees_east"), text("axis", "X")}),
			newVar(v.Name, maps, filled(values), data),
			newVar(v.Name+"_error", maps, filled(errors), fault),
			newVar(v.Name+"_count", maps, count, number),
		},
		Attrs: []cdl.Attr{
			text("Conventions", "CF-1.8"), text("title", "swaths of "+noon.Format(time.DateOnly)+" binned to a grid"),
			text("processing_level", "L3"), text("history", history),
		},
	}
}

const missing = -32767

func filled(x []float32) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		if out[i] = v; v != v {
			out[i] = missing
		}
	}
	return out
}

func newVar(name string, dims []string, data any, attrs []cdl.Attr) cdl.Var {
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		panic(fmt.Sprintf("swath: no bytes of %T", data))
	}
	kept := attrs[:0]
	for _, a := range attrs {
		if a.Value != "" {
			kept = append(kept, a)
		}
	}
	return cdl.Var{Name: name, Type: cdl.TypeOf(data), Dims: dims, Attrs: kept, Raw: raw}
}
