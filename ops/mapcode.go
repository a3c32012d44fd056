package ops

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// mostCells is the largest number of cells sent to a browser: a telephone can
// hold four pictures of as many pixels. Larger maps are thinned, and say so.
const mostCells = 6 << 20

// mapHeader is the beginning of an encoded map, as JSON.
type mapHeader struct {
	Variable   string    `json:"variable"`
	Units      string    `json:"units"`
	SigmaUnits string    `json:"sigma_units"`
	Log        bool      `json:"log"`
	Time       time.Time `json:"time"`
	Rows       int       `json:"rows"`
	Cols       int       `json:"cols"`
	Every      int       `json:"every"` // 1: every cell is there; 2: every second row and column
	Lat        []float64 `json:"lat"`   // latitudes of the rows, from north to south
	Lon        []float64 `json:"lon"`   // longitudes of the columns, from west to east
	Places     bool      `json:"places,omitempty"`
}

// encodeMap returns m as it is sent to browsers, compressed with gzip:
//
//	length of the header   4 bytes, little endian
//	header                 JSON
//	values                 4 planes of rows*cols bytes: the lowest bytes of all float32 numbers first
//	uncertainty            the same
//	flags                  rows*cols bytes
//	latitude, longitude    of each cell, as the values; only where the header says places
//
// North is up and east to the right. The numbers are those of the file, bit by
// bit; they are sent in planes because neighbours have equal high bytes, which
// compress well.
func encodeMap(m Map) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("encode map: %w", err)
	}
	every := 1
	for thinned(len(m.Lat), every)*thinned(len(m.Lon), every) > mostCells {
		every++
	}
	rows := order(m.Lat, every, func(a, b float64) bool { return a > b })
	cols := order(m.Lon, every, func(a, b float64) bool { return a < b })
	head, err := json.Marshal(mapHeader{
		Variable: m.Variable, Units: m.Units, SigmaUnits: m.SigmaUnits, Log: m.Log, Time: m.Time,
		Rows: len(rows), Cols: len(cols), Every: every, Lat: pick(m.Lat, rows), Lon: pick(m.Lon, cols), Places: m.Places[0] != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("encode map: %w", err)
	}
	cells := make([]int, 0, len(rows)*len(cols))
	for _, row := range rows {
		for _, col := range cols {
			cells = append(cells, row*len(m.Lon)+col)
		}
	}
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	body = append(body, head...)
	body = appendPlanes(body, m.Value, cells)
	body = appendPlanes(body, m.Sigma, cells)
	for _, cell := range cells {
		body = append(body, m.Flags[cell])
	}
	if m.Places[0] != nil {
		body = appendPlanes(appendPlanes(body, m.Places[0], cells), m.Places[1], cells)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("encode map: %w", err)
	}
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("encode map: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode map: %w", err)
	}
	return packed.Bytes(), nil
}

func (m Map) check() error {
	n := len(m.Lat) * len(m.Lon)
	if n == 0 {
		return errors.New("the grid is empty")
	}
	if len(m.Value) != n || len(m.Sigma) != n || len(m.Flags) != n {
		return fmt.Errorf("%d values, %d uncertainties and %d flags on a grid of %d×%d",
			len(m.Value), len(m.Sigma), len(m.Flags), len(m.Lat), len(m.Lon))
	}
	if p := m.Places; p[0] != nil && (len(p[0]) != n || len(p[1]) != n) {
		return fmt.Errorf("%d latitudes and %d longitudes for %d cells", len(p[0]), len(p[1]), n)
	}
	return nil
}

func thinned(n, every int) int { return (n + every - 1) / every }

// order returns the indices of an axis in the order of a map.
func order(axis []float64, every int, before func(a, b float64) bool) []int {
	var at []int
	for i := 0; i < len(axis); i += every {
		at = append(at, i)
	}
	if !before(axis[0], axis[len(axis)-1]) {
		for i, j := 0, len(at)-1; i < j; i, j = i+1, j-1 {
			at[i], at[j] = at[j], at[i]
		}
	}
	return at
}

func pick(axis []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, k := range at {
		out[i] = axis[k]
	}
	return out
}

// appendPlanes appends the lowest bytes of all numbers, then the next, and so
// on.
func appendPlanes(dst []byte, x []float32, cells []int) []byte {
	for shift := 0; shift < 32; shift += 8 {
		for _, cell := range cells {
			dst = append(dst, byte(math.Float32bits(x[cell])>>shift))
		}
	}
	return dst
}
