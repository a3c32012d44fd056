// Package pack keeps a series in one small file, so that a machine without
// netCDF, such as one that only lends its GPU, can train on it.
//
// A pack holds exactly what samples.New made of the fields, observed cells
// only. It is a cache: it carries no provenance, and nothing but the same
// program reads it.
package pack

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// version changes with the meaning of the file.
const version = 1

type file struct {
	Version  int
	Lat, Lon []float64
	Plane    *field.Plane
	Sea      []byte
	Log10    bool
	Floor    float32
	Days     []day
}

type day struct {
	Time     time.Time
	Observed []byte    // one bit for each cell
	Values   []float32 // values of the observed cells
}

// Write writes s to w.
func Write(w io.Writer, s samples.Series) error {
	f := file{Version: version, Lat: s.Grid.Lat, Lon: s.Grid.Lon, Plane: s.Grid.Plane, Sea: bits(s.Sea), Log10: s.Transform.Log10, Floor: s.Transform.Floor}
	for _, d := range s.Days {
		p := day{Time: d.Time}
		observed := make([]bool, len(d.Values))
		for i, v := range d.Values {
			if v == v { // not NaN
				observed[i] = true
				p.Values = append(p.Values, v)
			}
		}
		p.Observed = bits(observed)
		f.Days = append(f.Days, p)
	}
	z := gzip.NewWriter(w)
	if err := gob.NewEncoder(z).Encode(f); err != nil {
		return fmt.Errorf("pack series: %w", err)
	}
	return z.Close()
}

// Read reads a series that Write wrote.
func Read(r io.Reader) (samples.Series, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return samples.Series{}, fmt.Errorf("unpack series: %w", err)
	}
	var f file
	if err := gob.NewDecoder(z).Decode(&f); err != nil {
		return samples.Series{}, fmt.Errorf("unpack series: %w", err)
	}
	if f.Version != version {
		return samples.Series{}, fmt.Errorf("pack has version %d and this program reads %d: pack the files again", f.Version, version)
	}
	grid, err := field.NewGrid(f.Lat, f.Lon)
	if err != nil {
		return samples.Series{}, fmt.Errorf("unpack series: %w", err)
	}
	if grid.Plane = f.Plane; f.Plane != nil && (len(f.Plane.Lat) != grid.Len() || len(f.Plane.Lon) != grid.Len()) {
		return samples.Series{}, errDamaged
	}
	s := samples.Series{Grid: grid, Transform: field.Transform{Log10: f.Log10, Floor: f.Floor}}
	if s.Sea, err = mask(f.Sea, grid.Len()); err != nil {
		return samples.Series{}, err
	}
	for _, p := range f.Days {
		d, err := p.day(grid.Len())
		if err != nil {
			return samples.Series{}, fmt.Errorf("unpack %s: %w", p.Time.Format(time.DateOnly), err)
		}
		s.Days = append(s.Days, d)
	}
	return s, nil
}

var errDamaged = errors.New("pack is damaged: pack the files again")

func (p day) day(cells int) (samples.Day, error) {
	observed, err := mask(p.Observed, cells)
	if err != nil {
		return samples.Day{}, err
	}
	if observed.Count() != len(p.Values) {
		return samples.Day{}, errDamaged
	}
	d := samples.Day{Time: p.Time, Values: make([]float32, cells)}
	next := 0
	for i, seen := range observed {
		d.Values[i] = field.NaN()
		if seen {
			d.Values[i] = p.Values[next]
			next++
		}
	}
	return d, nil
}

func bits(m []bool) []byte {
	out := make([]byte, (len(m)+7)/8)
	for i, b := range m {
		if b {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func mask(b []byte, cells int) (field.Mask, error) {
	if len(b) != (cells+7)/8 {
		return nil, errDamaged
	}
	out := make(field.Mask, cells)
	for i := range out {
		out[i] = b[i/8]&(1<<(i%8)) != 0
	}
	return out, nil
}
