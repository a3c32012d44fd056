package samples

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// Backgrounds are analyses of days made from their neighbours only. They do not
// depend on the visible cells of the day itself, so one serves every partition
// of it.
type Backgrounds struct {
	archive *archive
	byDay   map[int]classical.Estimate
}

// BackgroundConfig holds the window and the method of backgrounds.
type BackgroundConfig struct {
	PastDays, FutureDays int
	OI                   classical.OI
	Workers              int // number of days in work at a time
}

// Backgrounds analyses the given days by optimal interpolation of the days
// around them. progress, if not nil, is called with the days done and their total.
func (a *archive) Backgrounds(ctx context.Context, days []int, cfg BackgroundConfig, progress func(done, total int)) (Backgrounds, error) {
	out := Backgrounds{archive: a, byDay: make(map[int]classical.Estimate, len(days))}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(cfg.Workers, 1))
	for _, day := range days {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := a.background(day, cfg)
			if err != nil {
				return fmt.Errorf("background of %s: %w", a.days[day].Time.Format(time.DateOnly), err)
			}
			mu.Lock()
			defer mu.Unlock()
			out.byDay[day] = e
			if progress != nil {
				progress(len(out.byDay), len(days))
			}
			return nil
		})
	}
	return out, group.Wait()
}

// background is an estimate of a day in which the day itself is blank. Where
// no neighbour has a value it is the mean map, zero, with the spread of the
// variable, one.
func (a *archive) background(day int, cfg BackgroundConfig) (classical.Estimate, error) {
	series, target := a.around(day, cfg.PastDays, cfg.FutureDays)
	cells := len(a.days[day].Values)
	blank := make([]float32, cells)
	for i := range blank {
		blank[i] = field.NaN()
	}
	series.Frames[target].Values = blank
	if len(series.Frames) == 1 {
		return plain(cells), nil
	}
	return cfg.OI.Fill(series, target, nil)
}

// around returns the frames from past days before a day to future days after
// it, and the index of the day among them.
func (a *archive) around(day, past, future int) (classical.Series, int) {
	p, target := a.placeOf[day], 0
	s := classical.Series{Grid: p.Grid, Sea: p.Sea}
	for i := p.first; i < p.end; i++ {
		if at := a.numbers[i] - a.numbers[day]; at < -int64(past) || at > int64(future) {
			continue
		}
		if i == day {
			target = len(s.Frames)
		}
		s.Frames = append(s.Frames, classical.Frame{Time: a.days[i].Time, Values: a.days[i].Values, Drift: a.days[i].Drift})
	}
	return s, target
}

func plain(n int) classical.Estimate {
	e := classical.Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
	for i := range e.Sigma {
		e.Sigma[i] = 1
	}
	return e
}

// Cut returns the background of the patch r and its standard deviation, 0 on
// land. It returns false if the day has none.
func (b Backgrounds) Cut(r Ref) (value, sigma []float32, ok bool) {
	e, ok := b.byDay[r.Day]
	if !ok {
		return nil, nil, false
	}
	p := b.archive.placeOf[r.Day]
	value, sigma = p.CutMap(e.Mean, r.Window), p.CutMap(e.Sigma, r.Window)
	for i := range value {
		if value[i] != value[i] { // NaN
			value[i], sigma[i] = 0, 0
		}
	}
	return value, sigma, true
}

// Analyse estimates the patch r by optimal interpolation of its visible cells
// and of the window on the days around it: a classical method with exactly the
// inputs of a network. Both maps are 0 on land.
func (a *archive) Analyse(r Ref, visible []bool, cfg BackgroundConfig) (value, sigma []float32, err error) {
	series, target := a.Around(r, visible, cfg.PastDays, cfg.FutureDays)
	e, err := cfg.OI.Fill(series, target, nil)
	switch {
	case errors.Is(err, classical.ErrNoObservations): // neither visible cells nor neighbours
		e = plain(r.Window.Len())
	case err != nil:
		return nil, nil, err
	}
	for i := range e.Mean {
		if e.Mean[i] != e.Mean[i] { // NaN
			e.Mean[i], e.Sigma[i] = 0, 0
		}
	}
	return e.Mean, e.Sigma, nil
}

// Around returns the days around the patch r as the input of a classical method:
// cut to its window, with only the visible cells on its own day, from past days
// before it to future days after it. The second result is the index of its own
// day.
func (a *archive) Around(r Ref, visible []bool, past, future int) (classical.Series, int) {
	series, target := a.around(r.Day, past, future)
	w, p := r.Window, a.placeOf[r.Day]
	cut := classical.Series{Grid: p.cutGrid(w), Sea: p.cutSea(w), Frames: make([]classical.Frame, len(series.Frames))}
	for i, f := range series.Frames {
		cut.Frames[i] = classical.Frame{Time: f.Time, Values: p.CutMap(f.Values, w)}
		if f.Drift != nil {
			cut.Frames[i].Drift = p.CutMap(f.Drift, w)
		}
	}
	own := cut.Frames[target].Values
	for i := range own {
		if !visible[i] {
			own[i] = field.NaN()
		}
	}
	return cut, target
}
