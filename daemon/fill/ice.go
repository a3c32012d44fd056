package fill

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
	"lacuna/publish/netcdf"
)

// Reading returns the options with which granules are read, so that they bring
// their share of ice where it is theirs.
func Reading(o ingest.Options, ice quality.Ice) ingest.Options {
	if ice.From == quality.OfGranule {
		o.SeaIce = cmp.Or(ice.Variable, ingest.IceName)
	}
	return o
}

// iceMaps are the maps of a file of ice on a grid.
type iceMaps struct {
	changed time.Time // of the file, which may grow by a day a day
	grid    field.Grid
	times   []time.Time
	shares  [][]float32
}

// thaw takes the observations under ice out of a granule, unless they are wanted,
// and notes where it is.
func (s *Screening) thaw(ctx context.Context, g *ingest.Granule, out *Screened) error {
	if !s.Ice.Any() {
		return nil
	}
	out.SeaIce, out.FillIce = "of the granule itself", s.Ice.Fill
	shares := g.Ice
	if s.Ice.File() {
		out.SeaIce = "of the file " + filepath.Base(s.Ice.From)
		var err error
		if shares, err = s.iceOf(ctx, g.Fields); err != nil {
			return err
		}
	}
	if !s.Ice.Fill {
		out.Counts[quality.ByIce.String()] = 0
	}
	if shares == nil {
		return nil
	}
	out.Ice = make([]field.Mask, len(g.Fields))
	for i, f := range g.Fields {
		out.Ice[i] = s.Ice.Mask(shares[i])
		out.IcePercent = append(out.IcePercent, percent(shares[i])...)
		for c, ice := range out.Ice[i] {
			if ice && !s.Ice.Fill && f.Observed(c) {
				f.Values[c], g.Rejected[i][c] = field.NaN(), true
				out.Counts[quality.ByIce.String()]++
			}
		}
	}
	return nil
}

// percent returns shares in whole hundredths, as products have them.
func percent(shares []float32) []byte {
	out := make([]byte, len(shares))
	for c, v := range shares {
		out[c] = netcdf.NoIce
		if v == v { // not NaN
			out[c] = byte(math.Round(float64(min(max(v, 0), 1)) * 100))
		}
	}
	return out
}

// iceOf returns the shares of ice for fields of one grid from the file; nil where
// it has none of their days.
func (s *Screening) iceOf(ctx context.Context, fields []field.Field) ([][]float32, error) {
	info, err := os.Stat(s.Ice.From)
	if err != nil {
		return nil, fmt.Errorf("sea ice: %w", err)
	}
	grid := fields[0].Grid
	if m := s.iceMaps; m == nil || !m.changed.Equal(info.ModTime()) || !m.grid.Same(grid) {
		g, err := s.Reader.Read(ctx, s.Ice.From, ingest.Options{Variable: cmp.Or(s.Ice.Variable, ingest.IceName), SeaIce: cmp.Or(s.Ice.Variable, ingest.IceName), Transform: "identity"})
		if err != nil {
			return nil, fmt.Errorf("sea ice: %v", err) //nolint:errorlint // a *BadGranule would set the granule in hand aside
		}
		m = &iceMaps{changed: info.ModTime(), grid: grid, times: field.Times(g.Fields), shares: g.Ice}
		if own := g.Fields[0].Grid; !own.Same(grid) {
			for i, shares := range m.shares {
				m.shares[i] = quality.Regrid(shares, own, grid)
			}
		}
		s.iceMaps = m
	}
	out := make([][]float32, len(fields))
	for i, f := range fields {
		at := quality.OfDay(s.iceMaps.times, f.Time)
		if at < 0 {
			return nil, nil
		}
		out[i] = s.iceMaps.shares[at]
	}
	return out, nil
}

// iceCaveat returns what does not hold of a product whose ice is not known; empty:
// it is known, or was not looked for.
func (s Screened) iceCaveat() string {
	if s.SeaIce == "" || s.Ice != nil {
		return ""
	}
	return "sea ice was looked for and is not known of this day: cells under ice are filled like open water"
}
