package fill

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/seamask"
)

// Choices of a sea mask; any other is the path of a NetCDF file.
const (
	SeaAuto    = "auto"    // the granule's own, else the built-in one; learned where that calls most observed cells land
	SeaBuiltin = "builtin" // the built-in one
	SeaLearned = "learned" // the cells that were observed on any known day
)

// settledDays is the number of days from which on a learned mask is nearly whole
// and the choice of it is final: of ten days that are half under cloud one cell in a
// thousand stays unseen. A starter model takes as many.
const settledDays = 10

// neverDays is the number of days from which on a cell that none of them shows is
// flagged as never observed: the gaps of fewer days are weather.
const neverDays = 5

// Shares of the observed cells that a mask calls land. A mask of the wrong kind
// calls nearly all of them so, a coarse one near a ragged coast a tenth.
const (
	mostly = 0.5  // above it the mask of SeaAuto is learned
	many   = 0.25 // above it a mask is warned of: the grid has lakes beside the sea
)

// A Record is what the days of a dataset have shown of its grid. It only grows,
// so that the mask of one product is not less than that of the one before.
type Record struct {
	Seen    field.Mask // cells that were observed on at least one day
	Dates   []string   // days with an observation, in order, each once
	Learned *bool      // whether the mask of SeaAuto is learned; nil: not settled yet
}

// Add adds fields on the grid of the record and reports whether it has grown.
func (r *Record) Add(fields ...field.Field) bool {
	grown := false
	for _, f := range fields {
		observed := false
		for i, v := range f.Values {
			if v == v { // not NaN
				observed = true
				grown = grown || !r.Seen[i]
				r.Seen[i] = true
			}
		}
		date := f.Time.UTC().Format(time.DateOnly)
		if at, known := slices.BinarySearch(r.Dates, date); observed && !known {
			r.Dates, grown = slices.Insert(r.Dates, at, date), true
		}
	}
	return grown
}

// Settled reports whether the days are enough for a mask to be learned from.
func (r *Record) Settled() bool { return len(r.Dates) >= settledDays }

// onLand returns the share of the observed cells that a mask calls land.
func (r *Record) onLand(sea field.Mask) float64 {
	seen, land := 0, 0
	for i, s := range r.Seen {
		if s {
			seen++
			if !sea[i] {
				land++
			}
		}
	}
	return float64(land) / float64(max(seen, 1))
}

// days returns the number of days of the record in words.
func (r *Record) days() string {
	switch n := len(r.Dates); n {
	case 0:
		return "no day"
	case 1:
		return "1 day, " + r.Dates[0]
	default:
		return fmt.Sprintf("%d days, %s to %s", n, r.Dates[0], r.Dates[n-1])
	}
}

// A Sea is the sea mask of a granule.
type Sea struct {
	Mask    field.Mask
	Seen    field.Mask // cells that were observed on any known day; nil: too few days are known to tell
	Kind    string     // "builtin", "learned", "granule" or "file"
	Origin  string     // where the mask comes from, for products
	Warning string     // fault of the mask, and the remedy; empty: none
}

// SeaReader reads the sea mask of a grid from a file.
type SeaReader interface {
	ReadSea(ctx context.Context, path string, grid field.Grid) (field.Mask, error)
}

// SeaMask returns the sea mask of a granule's grid by choice, with the granule and
// its history as the known days.
func SeaMask(ctx context.Context, choice string, reader SeaReader, g ingest.Granule, history []ingest.Granule) (Sea, error) {
	grid := g.Fields[0].Grid
	record := &Record{Seen: make(field.Mask, grid.Len())}
	record.Add(g.Fields...)
	for _, h := range history {
		if h.Fields[0].Grid.Same(grid) {
			record.Add(h.Fields...)
		}
	}
	return record.Sea(ctx, choice, reader, g)
}

// Sea returns the sea mask of a granule of the record's dataset by choice. It
// settles in the record whether SeaAuto is a learned mask, once enough days say so.
func (r *Record) Sea(ctx context.Context, choice string, reader SeaReader, g ingest.Granule) (Sea, error) {
	sea, err := r.given(ctx, choice, reader, g)
	if err != nil {
		return Sea{}, err
	}
	if len(r.Dates) >= neverDays {
		sea.Seen = slices.Clone(r.Seen)
	}
	if choice == SeaLearned {
		return r.learned(sea), nil
	}
	land := r.onLand(sea.Mask)
	if choice == SeaAuto || choice == "" {
		learn := land > mostly
		if r.Learned == nil && r.Settled() {
			r.Learned = &learn
		}
		if r.Learned != nil {
			learn = *r.Learned
		}
		if learn {
			out := r.learned(sea)
			calls := fmt.Sprintf("the %s sea mask calls %.0f %% of the observed cells land", adjective(sea.Kind), 100*land)
			out.Origin += "; " + calls
			out.Warning = fmt.Sprintf("%s, as it does lakes: it is learned from %s instead%s; name a mask of your own if you have one", calls, r.days(), r.growing())
			return out, nil
		}
	}
	if land > many {
		sea.Warning = fmt.Sprintf("the %s sea mask calls %.0f %% of the observed cells land, where no gap is filled: set the sea mask to %s, or to a mask of your own",
			adjective(sea.Kind), 100*land, SeaLearned)
	}
	return sea, nil
}

// given returns the mask that does not depend on what was observed.
func (r *Record) given(ctx context.Context, choice string, reader SeaReader, g ingest.Granule) (sea Sea, err error) {
	grid := g.Fields[0].Grid
	switch choice {
	case SeaLearned:
		return Sea{}, nil
	case SeaAuto, "":
		if own := g.Fields[0].Sea; own != nil {
			return Sea{Mask: own, Kind: "granule", Origin: "of the granule itself"}, nil
		}
		fallthrough
	case SeaBuiltin:
		sea = Sea{Kind: "builtin", Origin: "built in: " + seamask.Provenance}
		sea.Mask, err = builtinSeas.of(grid)
		return sea, err
	}
	sea = Sea{Kind: "file", Origin: "of the file " + filepath.Base(choice)}
	sea.Mask, err = reader.ReadSea(ctx, choice, grid)
	return sea, err
}

// learned returns sea with the mask of the record.
func (r *Record) learned(sea Sea) Sea {
	sea.Mask, sea.Kind = slices.Clone(r.Seen), "learned"
	sea.Origin = "learned: the cells that were observed on at least one of " + r.days()
	if growing := r.growing(); growing != "" {
		sea.Warning = fmt.Sprintf("the sea mask is learned from %s only%s", r.days(), growing)
	}
	return sea
}

// growing says that a learned mask is not whole yet, where that is so.
func (r *Record) growing() string {
	if r.Settled() {
		return ""
	}
	return ", and cells that none of them shows are left out until one does"
}

func adjective(kind string) string {
	switch kind {
	case "builtin":
		return "built-in"
	case "granule":
		return "granule's own"
	}
	return "given"
}
