package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// EmptyDays is the treatment of times of which the archive has no granule.
type EmptyDays string

// The treatments.
const (
	FillEmptyDays EmptyDays = "fill" // a product from the granules around
	SkipEmptyDays EmptyDays = "skip" // no product
)

// Validate reports an unknown treatment. The message begins with the key.
func (e EmptyDays) Validate() error {
	if e != FillEmptyDays && e != SkipEmptyDays {
		return fmt.Errorf("empty_days is %q, must be %s or %s", e, FillEmptyDays, SkipEmptyDays)
	}
	return nil
}

// noteAbsences records the times of the dataset of which the archive has no
// granule, and returns how many are new. Their products are then made like those
// of granules.
func (w *Worker) noteAbsences(ctx context.Context) (noted int, err error) {
	if w.set.EmptyDays != FillEmptyDays {
		return 0, nil
	}
	if err := w.findStep(ctx); err != nil {
		return 0, err
	}
	reach := w.set.Fill.Past() + w.set.Fill.Future() + week
	starts, err := w.Books.Starts(ctx, w.set.Name, w.looked.from(reach))
	if err != nil {
		return 0, err
	}
	s := series{
		starts: starts, step: w.looked.step, past: w.set.Fill.Past(), future: w.set.Fill.Future(), due: w.set.Due, now: w.Now(), whole: w.Now(),
	}
	if w.Whole != nil {
		s.whole = w.Whole()
	}
	if w.Fetching != nil {
		s.asked = w.Fetching()
	}
	found := s.vacancies()
	for _, v := range found.ready {
		added, err := w.addAbsence(ctx, v)
		if err != nil {
			return noted, err
		}
		if added {
			noted++
			w.Log.Info("no granule of this time in the archive", "time", v.time.UTC().Format(time.RFC3339), "like", v.like.Name)
		}
	}
	w.looked = looked{until: found.until, step: found.step}
	return noted, nil
}

// looked says how far a series was looked through for absences, so that the work
// does not grow with the series. The zero value: not at all.
type looked struct {
	until time.Time     // absences before it are on record
	step  time.Duration // of the series
}

// from returns the time from which the series has to be read, for a look at times
// that have neighbours within reach.
func (l looked) from(reach time.Duration) time.Time {
	if l.until.IsZero() {
		return time.Time{}
	}
	return l.until.Add(-reach)
}

// again has the times around a granule looked at again, which came, or was set
// aside.
func (l *looked) again(g ledger.Granule, granule ingest.Granule) {
	t := g.First
	if len(granule.Fields) > 0 {
		t, _ = field.Span(granule.Fields)
	}
	if !t.IsZero() && t.Before(l.until) {
		l.until = t
	}
}

// addAbsence records a vacancy under the name that its granule should have; where
// that is taken, as by a granule in quarantine, under one of our own.
func (w *Worker) addAbsence(ctx context.Context, v vacancy) (added bool, err error) {
	own := w.set.Name + v.time.UTC().Format("_20060102T150405") + ".nc"
	for _, name := range []string{nameLike(v.like, v.time), own} {
		if name == "" || added {
			continue
		}
		added, err = w.Books.AddAbsence(ctx, ledger.Absence{Dataset: w.set.Name, Name: name, Times: []time.Time{v.time}, Lane: v.lane}, w.Now())
		if err != nil {
			return false, err
		}
	}
	return added, nil
}

// standIn returns a granule in the place of the absence g: like its nearest
// neighbours, without an observation. It has none where no neighbour is left.
func (w *Worker) standIn(ctx context.Context, g ledger.Granule) (ingest.Granule, error) {
	around, err := w.around(ctx, g)
	if err != nil {
		return ingest.Granule{}, err
	}
	return fill.Absent(g.Name, g.First, around)
}

// around returns the nearest neighbours of an absence on one grid, of which there is
// one at least.
func (w *Worker) around(ctx context.Context, g ledger.Granule) ([]ingest.Granule, error) {
	rows, err := w.Books.Window(ctx, w.set.Name, g.First.Add(-w.set.Fill.Past()), g.Last.Add(w.set.Fill.Future()))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b ledger.Granule) int {
		return int(a.First.Sub(g.First).Abs()/time.Second - b.First.Sub(g.First).Abs()/time.Second)
	})
	const most = 4 // neighbours that tell which attributes are those of the dataset
	var around []ingest.Granule
	for _, row := range rows {
		if len(around) == most {
			break
		}
		read := w.neighbour
		if len(around) == 0 { // the stand-in is like the first, and of the others are the attributes
			read = w.read
		}
		neighbour, err := read(ctx, row)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && (len(around) == 0 || neighbour.Fields[0].Grid.Same(around[0].Fields[0].Grid)) {
			around = append(around, neighbour)
		}
	}
	if len(around) == 0 {
		return nil, &ingest.BadGranule{
			File: g.Name, Problem: "it is absent, and so are all granules around it", Remedy: "it is filled with the days around it, when they have come",
		}
	}
	return around, nil
}
