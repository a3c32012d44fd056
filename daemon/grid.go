package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"lacuna/internal/faults"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// settledVotes is how many granules must agree for the grid of a dataset to be
// settled: an archive has an odd file among its first ones now and then, and
// hardly three of five.
const settledVotes = 5

// A PinnedGrid is the grid that the configuration gives a dataset.
type PinnedGrid struct {
	Shape Shape      `yaml:"shape"` // rows and columns, as HEIGHTxWIDTH
	Lat   [2]float64 `yaml:"lat"`   // latitudes of the first and the last row, in either order
	Lon   [2]float64 `yaml:"lon"`   // longitudes of the first and the last column, in either order
}

// Shape is how many rows and columns a grid has, written as HEIGHTxWIDTH.
type Shape struct{ Height, Width int }

// mostCells bounds a side of a grid: at a hundred metres the Earth has twice as
// many columns, and no granule of the whole of it.
const mostCells = 200_000

// UnmarshalText reads "158x220".
func (s *Shape) UnmarshalText(text []byte) error {
	var h, w int
	var rest string
	if n, _ := fmt.Sscanf(string(text), "%dx%d%s", &h, &w, &rest); n != 2 || h < 2 || w < 2 || h > mostCells || w > mostCells {
		return fmt.Errorf("shape is %q, must be HEIGHTxWIDTH like 158x220, 2 to %d each", text, mostCells)
	}
	*s = Shape{Height: h, Width: w}
	return nil
}

// String writes what UnmarshalText reads.
func (s Shape) String() string { return fmt.Sprintf("%dx%d", s.Height, s.Width) }

// Validate reports everything wrong with p. Each message begins with the key.
func (p PinnedGrid) Validate() error {
	var errs faults.List
	errs.Check(p.Shape != Shape{}, "shape is missing, must be HEIGHTxWIDTH like 158x220")
	errs.Check(p.Lat[0] != p.Lat[1] && inside(p.Lat, -90, 90), "lat is %v, must be the latitudes of the first and the last row, -90 to 90", p.Lat)
	errs.Check(p.Lon[0] != p.Lon[1] && inside(p.Lon, -360, 540), "lon is %v, must be the longitudes of the first and the last column", p.Lon)
	return errs.Err()
}

func inside(ends [2]float64, low, high float64) bool {
	return min(ends[0], ends[1]) >= low && max(ends[0], ends[1]) <= high
}

// String writes p as the configuration has it.
func (p PinnedGrid) String() string {
	return fmt.Sprintf("{shape: %v, lat: [%g, %g], lon: [%g, %g]}", p.Shape, p.Lat[0], p.Lat[1], p.Lon[0], p.Lon[1])
}

// pinOf returns how a configuration would name a grid.
func pinOf(g field.Grid) PinnedGrid {
	south, north, west, east := g.Bounds()
	return PinnedGrid{
		Shape: Shape{g.Height(), g.Width()},
		Lat:   [2]float64{roundDegrees(south), roundDegrees(north)}, Lon: [2]float64{roundDegrees(west), roundDegrees(east)},
	}
}

// roundDegrees keeps a tenth of a metre: axes in single precision have no more.
func roundDegrees(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// pinnedCells is how far, in cells, the ends of an axis may be off: they are
// typed from a document. A shift of a tenth of a cell is another grid.
const pinnedCells = 0.05

// has reports whether g is the grid that is named.
func (p PinnedGrid) has(g field.Grid) bool {
	south, north, west, east := g.Bounds()
	near := func(named [2]float64, low, high float64, cells int) bool {
		slack := pinnedCells * (high - low) / float64(max(cells-1, 1))
		return math.Abs(min(named[0], named[1])-low) <= slack && math.Abs(max(named[0], named[1])-high) <= slack
	}
	return p.Shape == Shape{g.Height(), g.Width()} && near(p.Lat, south, north, g.Height()) && near(p.Lon, west, east, g.Width())
}

// checkGrid refuses a granule on another grid than the dataset's: the one that
// the configuration names, else what most of its first granules have. Nothing is
// waited for: the first granule is filled at once, and the grid may change until
// it is settled. What waits already is asked before, so that a product on a grid
// that will not stand is not even made.
func (w *worker) checkGrid(ctx context.Context, g ledger.Granule, granule ingest.Granule) error {
	standing, err := w.vote(ctx, g, granule)
	if err == nil && !standing.Settled && w.set.Grid == nil {
		if err = w.canvass(ctx, g); err == nil {
			standing, err = w.vote(ctx, g, granule)
		}
	}
	if err != nil || standing.Agrees {
		return err
	}
	return w.oddGrid(granule, standing)
}

// vote counts the grid of a granule and says how that of the dataset stands.
func (w *worker) vote(ctx context.Context, g ledger.Granule, granule ingest.Granule) (ledger.Standing, error) {
	grid := granule.Fields[0].Grid
	text, err := json.Marshal(grid)
	if err != nil {
		return ledger.Standing{}, fmt.Errorf("encode grid: %w", err)
	}
	pin := w.set.Grid
	pinned := pin != nil && pin.has(grid)
	standing, err := w.book.VoteGrid(ctx, ledger.Vote{
		Dataset: g.Dataset, Name: g.Name, Granule: g.ID,
		Grid:    ledger.Grid{Fingerprint: grid.String(), JSON: string(text)},
		Settled: settledVotes, Pinned: pinned, Refused: pin != nil && !pinned, Sinks: w.cfg.SinkNames(),
		Same: func(known string) (bool, error) {
			var before field.Grid
			if err := json.Unmarshal([]byte(known), &before); err != nil {
				return false, fmt.Errorf("decode grid of dataset %s: %w", w.set.Name, err)
			}
			return grid.Same(before) || pinned && len(before.Lat) > 0 && len(before.Lon) > 0 && pin.has(before), nil
		},
	}, w.now())
	if standing.Changed {
		w.log.Info("grid of the dataset", "grid", standing.Grid.Fingerprint, "why", standing.Grid.Why)
		w.nudge()
	}
	return standing, err
}

// canvass lets the granules that wait with g vote.
func (w *worker) canvass(ctx context.Context, g ledger.Granule) error {
	waiting, err := w.book.FirstPending(ctx, w.set.Name, settledVotes)
	if err != nil {
		return err
	}
	for _, next := range waiting {
		if next.ID == g.ID {
			continue
		}
		granule, err := w.read(ctx, next)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			continue // it is told or set aside when it is its turn
		}
		if _, err := w.vote(ctx, next, granule); err != nil {
			return err
		}
	}
	return nil
}

// oddGrid says why a granule is not taken. The ledger knows such a granule by
// the words "its grid is" and "but dataset" where it was made anew.
func (w *worker) oddGrid(granule ingest.Granule, s ledger.Standing) error {
	name, grid := w.set.Name, granule.Fields[0].Grid
	bad := &ingest.BadGranule{File: granule.Name}
	switch {
	case w.set.Grid != nil:
		bad.Problem = fmt.Sprintf("its grid is %v, but dataset %s is configured as %v", grid, name, *w.set.Grid)
		bad.Remedy = fmt.Sprintf("correct or remove grid in the configuration of the dataset and run 'lacuna grid reset --dataset %s', or configure a new dataset", name)
	case !s.Settled:
		bad.Problem = fmt.Sprintf("its grid is %v, but dataset %s is %s so far", grid, name, s.Grid.Fingerprint)
		bad.Remedy = fmt.Sprintf("it is taken up by itself if most of the first granules have its grid; 'lacuna grid show --dataset %s' counts them", name)
	default:
		bad.Problem = fmt.Sprintf("its grid is %v, but dataset %s has been %s since %s", grid, name, s.Grid.Fingerprint, s.Grid.Since.Format(time.DateOnly))
		bad.Remedy = fmt.Sprintf("if the producer changed the grid, configure a new dataset, or run 'lacuna grid reset --dataset %s'", name)
	}
	return bad
}

// takeUp brings back the granules that were set aside for a grid that is the
// dataset's after all, or that was reset. Cut off, it goes on at the next call.
func (w *worker) takeUp(ctx context.Context) error {
	rows, err := w.book.Regained(ctx, w.set.Name)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return nil
	}
	why := "the grid of the dataset was reset"
	if grid, known, err := w.book.Grid(ctx, w.set.Name); err != nil {
		return err
	} else if known {
		why = fmt.Sprintf("the grid of the dataset is %s: %s", grid.Fingerprint, grid.Why)
	}
	operations := newOperations(w.cfg, w.book, w.now)
	for _, g := range rows {
		err := operations.retry(ctx, g, why)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			w.log.Warn("granule stays set aside", "granule", g.Name, "err", err)
			if err := w.book.DropVote(ctx, g.ID); err != nil {
				return err
			}
			continue
		}
		w.log.Info("granule taken up again", "granule", g.Name, "was", g.Reason)
	}
	return nil
}
