package jobs

import (
	"fmt"
	"image"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lacuna/pipeline/lab/chart"
	"lacuna/pipeline/lab/tables"
)

// A column is how the methods of one table filled one sample of a dataset.
type column struct {
	table, dataset string
	side           int
	samples        map[string]*tables.Sample // by method
}

// drawFiles draws a sheet for every size of windows: datasets below one another,
// truth and methods side by side. All methods of a dataset show one sample, the
// one of which the mean map has the median error.
func drawFiles(o options, out io.Writer) error {
	var all []*column
	for _, path := range o.files {
		err := readRecords(path, func(r tables.Record) {
			if r.Sample == nil {
				return
			}
			at := slices.IndexFunc(all, func(c *column) bool { return c.table == r.Table && c.dataset == r.Dataset && c.side == r.Side })
			if at < 0 {
				at = len(all)
				all = append(all, &column{r.Table, r.Dataset, r.Side, map[string]*tables.Sample{}})
			}
			all[at].samples[r.Verdict.Method] = r.Sample
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	methods := strings.Split(o.methods, ",")
	if err := os.MkdirAll(o.pictures, 0o755); err != nil {
		return err
	}
	drawn := false
	for _, side := range sidesOf(all) {
		var sheets []image.Image
		for _, c := range fullest(all, side, methods) {
			sheet, err := c.draw(methods)
			if err != nil {
				return err
			}
			sheets = append(sheets, sheet)
		}
		if len(sheets) == 0 {
			continue
		}
		path := filepath.Join(o.pictures, fmt.Sprintf("methods-%d.png", side))
		if err := chart.WritePNG(path, chart.Below(sheets...)); err != nil {
			return err
		}
		drawn = true
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	if !drawn {
		return fmt.Errorf("no sample of %s in %v: results of jobs hold them, of first seeds", o.methods, o.files)
	}
	return nil
}

func sidesOf(all []*column) []int {
	var sides []int
	for _, c := range all {
		sides = append(sides, c.side)
	}
	slices.Sort(sides)
	return slices.Compact(sides)
}

// fullest returns of each dataset the table with the most of the methods, in the
// order in which datasets appear.
func fullest(all []*column, side int, methods []string) []*column {
	count := func(c *column) int {
		n := 0
		for _, m := range methods {
			if c.samples[m] != nil {
				n++
			}
		}
		return n
	}
	var out []*column
	for _, c := range all {
		if c.side != side || count(c) == 0 {
			continue
		}
		at := slices.IndexFunc(out, func(o *column) bool { return o.dataset == c.dataset })
		switch {
		case at < 0:
			out = append(out, c)
		case count(c) > count(out[at]):
			out[at] = c
		}
	}
	return out
}

// draw shows the truth and what the methods made of it, on one scale.
func (c *column) draw(methods []string) (image.Image, error) {
	var sheet chart.Maps
	var shown *tables.Sample
	for _, m := range methods {
		s := c.samples[m]
		if s == nil {
			continue
		}
		if shown == nil {
			shown = s
			scale := chart.Range(s.Truth)
			scale.Label, scale.Log10 = c.dataset, s.Log10
			sheet = chart.Maps{Title: fmt.Sprintf("%s, %d×%d", c.dataset, c.side, c.side), Caption: s.Caption, Grid: s.Grid, Sea: []bool(s.Sea)}
			sheet.Panels = []chart.Panel{{Title: "truth", Values: s.Truth, Scale: scale, Visible: []bool(s.Visible), Scored: []bool(s.Scored)}}
		}
		if s.Case != shown.Case || s.Caption != shown.Caption {
			return nil, fmt.Errorf("table %s of %s: %s shows another sample than the rows before it; give results of one run", c.table, c.dataset, m)
		}
		p := sheet.Panels[0]
		p.Title, p.Values = fmt.Sprintf("%s, MSE %.3f", m, errorOf(s)), composed(s)
		sheet.Panels = append(sheet.Panels, p)
	}
	return sheet.Draw(), nil
}

// composed returns the map of a method with what it was shown left as it was.
func composed(s *tables.Sample) []float32 {
	out := slices.Clone(s.Filled)
	for i, visible := range s.Visible {
		if visible {
			out[i] = s.Truth[i]
		}
	}
	return out
}

// errorOf returns the mean squared error over the scored cells, in the squared
// unit of the map.
func errorOf(s *tables.Sample) float64 {
	sum, n := 0.0, 0.0
	for i, scored := range s.Scored {
		if scored {
			sum, n = sum+math.Pow(float64(s.Filled[i]-s.Truth[i]), 2), n+1
		}
	}
	return sum / n
}
