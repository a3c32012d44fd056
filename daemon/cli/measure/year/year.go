// Package year runs a service's year in fast motion: a simulated sea whose sensor is
// replaced in the middle, a fine-tune every week by the training service, and the
// question whether it helped.
//
//	days ──week by week──▶ retrain.Training ──gate──▶ store ──▶ champion of the week
//	                                                              │
//	Result ◀── errors of every champion on all days of the year ──┘
//
// Weeks are judged on days that the champion of the week could not have seen, since
// they came after it was made. A promotion is judged on the days that follow it,
// old champion and new alike: nobody has learned from them.
//
// Package year knows nothing of granules, archives and products.
package year

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/daemon/state"
	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/field"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/version"
)

// Config describes a year.
type Config struct {
	Sea       simulate.Config // Change.Day is counted from the first day of all
	FirstDays int             // days before the first week: the first model learns from them
	Weeks     int
	WeekDays  int // days from one fine-tune to the next
	Steps     int // of the first training
	TuneSteps int // of a fine-tune
	Side      int // cells of a window
	GapDays   int // days between those that learn and those that judge
}

// DefaultConfig is a year of a small sea that one core goes through in a quarter of an
// hour.
func DefaultConfig() Config {
	c := Config{FirstDays: 160, Weeks: 52, WeekDays: 7, Steps: 600, TuneSteps: 80, Side: 16, GapDays: 4}
	c.Sea = simulate.Config{Product: "blk-chl", Height: 16, Width: 24, Seed: 5, DayBias: 0.2}
	// A sensor that reads a sixth of what the one before did and sees less of the sea.
	// Of biases both ways this costs most: networks depart from an analysis of what
	// they see, so that most of a bias is none to them.
	c.Sea.Change = simulate.Change{Day: c.FirstDays + c.WeekDays*26, Bias: -0.8, Swath: 0.7}
	return c
}

// changeWeek returns the week in which the new sensor comes.
func (c Config) changeWeek() int { return (c.Sea.Change.Day - c.FirstDays) / c.WeekDays }

// Tuned is the outcome of the training at the beginning of a week.
type Tuned struct {
	Week     int      `json:"week"` // 0: the first training
	Version  string   `json:"version"`
	Promoted bool     `json:"promoted"`
	ByHand   bool     `json:"by_hand,omitempty"` // the first, where the gate would have kept optimal interpolation
	Reasons  []string `json:"reasons"`
	Learned  int      `json:"learned"` // days of the new sensor that it learned from
	Judged   int      `json:"judged"`  // and was judged on
}

const dataset = "sea"

// Run goes through the year. Versions are written to a store in folder, with a note
// after every week, so that a year that was cut off goes on; told is called after
// every week.
func Run(ctx context.Context, c Config, folder string, e *engine.Engine, told func(Tuned)) (Result, error) {
	series, err := seriesOf(c)
	if err != nil {
		return Result{}, err
	}
	y := &yearRun{Config: c, series: series, store: modelstore.New(filepath.Join(folder, "store"), time.Now), engine: e}
	note := filepath.Join(folder, "weeks.json")
	var all []Tuned
	if _, err := state.Load(note, &all); err != nil {
		return Result{}, err
	}
	for week := len(all); week < c.Weeks; week++ {
		t, err := y.train(ctx, week)
		if err != nil {
			return Result{}, fmt.Errorf("week %d: %w", week, err)
		}
		all = append(all, t)
		if err := state.Save(note, all); err != nil {
			return Result{}, err
		}
		told(t)
	}
	return y.judge(ctx, all[:c.Weeks])
}

// seriesOf returns all days of the year, those before it, and those after it that
// its last promotion is judged on.
func seriesOf(c Config) (samples.Series, error) {
	days := c.FirstDays + c.WeekDays*c.Weeks + promotionDays
	c.Sea.Days = days
	world, err := simulate.New(c.Sea)
	if err != nil {
		return samples.Series{}, err
	}
	fields := make([]field.Field, days)
	for d := range fields {
		fields[d] = world.Day(d).Seen
	}
	transform := field.Transform{}
	if world.Product().Log {
		transform = field.Transform{Log10: true, Floor: 1e-6}
	}
	return samples.New(fields, world.Sea(), transform)
}

// yearRun is a year under way.
type yearRun struct {
	Config
	series samples.Series
	store  *modelstore.Store
	engine *engine.Engine
}

// day returns the time at which a day begins, counted from the first of all.
func (y *yearRun) day(n int) time.Time {
	return y.series.Days[0].Time.UTC().Truncate(24*time.Hour).AddDate(0, 0, n)
}

// until returns the series up to before a day.
func (y *yearRun) until(day int) samples.Series {
	s, end := y.series, y.day(day)
	s.Days = slices.DeleteFunc(slices.Clone(s.Days), func(d samples.Day) bool { return !d.Time.Before(end) })
	return s
}

// train makes a version from the days before a week, as the service does: a fine-tune
// of the champion where there is one.
func (y *yearRun) train(ctx context.Context, week int) (Tuned, error) {
	request := retrain.Request{
		Store: y.store.Dir(), Dataset: dataset, Policy: retrain.PolicyAuto, Engine: y.engine, Lacuna: "year",
		Data:    []retrain.Data{{Series: y.until(y.FirstDays + y.WeekDays*week), Variable: "CHL"}},
		Options: retrain.Options{Size: nn.Tiny, Strategy: "empirical", Budget: version.Budget{Steps: y.Steps, Side: y.Side, GapDays: y.GapDays}},
		Starter: func(context.Context) (*modelstore.Version, string, error) {
			return nil, "a year begins without one", nil
		},
	}
	if _, err := y.store.Champion(dataset); err == nil {
		request.From, request.Options.Size, request.Options.Budget.Steps = retrain.FromChampion, "", y.TuneSteps
	}
	training, err := retrain.Prepare(ctx, request)
	if err != nil {
		return Tuned{}, err
	}
	var done retrain.Event
	err = training.Run(ctx, retrain.Hooks{Progress: func(version.Progress) {}, Done: func(e retrain.Event) error { done = e; return nil }})
	if err != nil {
		return Tuned{}, err
	}
	v, err := y.store.Peek(done.Version)
	if err != nil {
		return Tuned{}, err
	}
	change := y.day(y.Sea.Change.Day).Format(time.DateOnly)
	since := func(days []string) (n int) {
		for _, d := range days {
			if d >= change {
				n++
			}
		}
		return n
	}
	t := Tuned{
		Week: week, Version: done.Version, Promoted: done.State == retrain.StatePromoted, Reasons: done.Reasons,
		Learned: since(v.Card.Split.Learn), Judged: since(v.Card.Split.Judge),
	}
	if week == 0 && !t.Promoted {
		// A year is of fine-tunes, and without a first model there are none.
		t.Promoted, t.ByHand = true, true
		_, err = y.store.Promote(ctx, modelstore.Change{Dataset: dataset, Version: t.Version, By: "year", Why: []string{"a first model to be fine-tuned"}})
	}
	return t, err
}
