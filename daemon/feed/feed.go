// Package feed is a simulated producer: it writes granules into the folder of an
// archive, with late and replaced ones among them, for demos and for tests. Each
// file appears whole, and a feed that was stopped goes on where it was.
//
// It does not know who reads the granules.
package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/simulate"
	"lacuna/publish/netcdf"
)

// Feed writes granules at a pace that people can watch, one delivery an interval.
type Feed struct {
	Product     string        `yaml:"product"`      // see lacuna simulate --help
	Grid        Size          `yaml:"grid"`         // HEIGHTxWIDTH; empty: a size fit for a demo
	Seed        uint64        `yaml:"seed"`         // another seed is another ocean
	BacklogDays int           `yaml:"backlog_days"` // days that are in the archive at the start
	Interval    time.Duration `yaml:"interval"`     // from one delivery to the next
}

// feedDays bounds the schedule: ten years at a delivery every five seconds are
// five hours of demo.
const feedDays = 3650

// feedState is the name of the file in the archive that remembers how far the
// feed has come. It begins with a dot, so no watcher takes it for a granule.
const feedState = ".feed.json"

// Validate reports everything wrong with f.
func (f *Feed) Validate() error {
	var errs []error
	if _, err := f.world(); err != nil {
		errs = append(errs, fmt.Errorf("product is %q: %w", f.Product, err))
	}
	if f.Interval <= 0 {
		errs = append(errs, fmt.Errorf("interval is %v, must be positive", f.Interval))
	}
	if f.BacklogDays < 0 || f.BacklogDays > 365 {
		errs = append(errs, fmt.Errorf("backlog_days is %d, must be 0..365", f.BacklogDays))
	}
	return errors.Join(errs...)
}

// UnmarshalYAML fills in the defaults before the keys are read.
func (f *Feed) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Feed
	*f = Feed{Product: "blk-chl", Seed: 1, BacklogDays: 10, Interval: 5 * time.Second}
	return unmarshal((*plain)(f))
}

func (f *Feed) world() (*simulate.World, error) {
	return simulate.New(simulate.Config{
		Product: f.Product, Height: f.Grid.Height, Width: f.Grid.Width, Days: feedDays, Seed: f.Seed,
	})
}

// Run writes one delivery after the other until ctx is cancelled.
func (f *Feed) Run(ctx context.Context, folder string, log *slog.Logger) error {
	if err := f.CatchUp(ctx, folder); err != nil {
		return err
	}
	world, err := f.world()
	if err != nil {
		return err
	}
	tick := time.NewTicker(f.Interval)
	defer tick.Stop()
	schedule := world.Schedule()
	last, err := loadFeed(folder)
	if err != nil {
		return err
	}
	for next := last.Next; next < len(schedule); next++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		d := schedule[next]
		log.Debug("simulated delivery", "granule", d.Name, "revision", d.Revision, "late", d.Late)
		if err := deliver(world, d, folder, next+1); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// CatchUp writes the backlog, if it is not there yet.
func (f *Feed) CatchUp(ctx context.Context, folder string) error {
	world, err := f.world()
	if err != nil {
		return err
	}
	last, err := loadFeed(folder)
	if err != nil {
		return err
	}
	for next := last.Next; next < min(f.BacklogDays, len(world.Schedule())); next++ {
		if err := ctx.Err(); err != nil {
			return nil //nolint:nilerr // a stop is not a failure of the feed
		}
		if err := deliver(world, world.Schedule()[next], folder, next+1); err != nil {
			return err
		}
	}
	return nil
}

// progress is how far a feed has come.
type progress struct {
	Next int       `json:"next"` // number of the next delivery
	At   time.Time `json:"at"`   // time of the last one in the simulated sea
}

// Clock returns what time it is in the simulated sea whose granules are in a
// folder, where a day passes from one delivery to the next: a lag by the clock of
// the machine would mean nothing there. It is zero before the first delivery.
func (f *Feed) Clock(folder string, now time.Time) time.Time {
	path := filepath.Join(folder, feedState)
	last, err := loadFeed(folder)
	if err != nil || last.At.IsZero() {
		return time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	days := now.Sub(info.ModTime()).Seconds() / f.Interval.Seconds()
	return last.At.Add(time.Duration(min(max(days, 0), 1) * float64(24*time.Hour))) // a feed that rests stands still
}

// deliver writes one granule and remembers which delivery is the next.
func deliver(world *simulate.World, d simulate.Delivery, folder string, next int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	g := world.Granule(d)
	if err := Write(filepath.Join(folder, g.Name), g); err != nil {
		return err
	}
	state, err := json.Marshal(progress{Next: next, At: d.At})
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(folder, feedState), state, 0o644); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return nil
}

// Write writes a simulated granule as a NetCDF file.
func Write(path string, g simulate.Granule) error {
	if err := netcdf.Write(path, netcdf.File(g.File)); err != nil {
		return fmt.Errorf("simulate %s: %w", g.Name, err)
	}
	return nil
}

// loadFeed returns how far the feed of a folder has come.
func loadFeed(folder string) (progress, error) {
	state, err := os.ReadFile(filepath.Join(folder, feedState))
	if errors.Is(err, fs.ErrNotExist) {
		return progress{}, nil
	}
	if err != nil {
		return progress{}, fmt.Errorf("simulate: %w", err)
	}
	var saved progress
	if err := json.Unmarshal(state, &saved); err != nil {
		return saved, fmt.Errorf("simulate: %s is damaged, remove it to start the feed anew: %w", feedState, err)
	}
	return saved, nil
}

// Size is a grid size written as HEIGHTxWIDTH.
type Size struct{ Height, Width int }

// UnmarshalText reads "158x220".
func (s *Size) UnmarshalText(text []byte) error {
	var h, w int
	var rest string
	if n, _ := fmt.Sscanf(string(text), "%dx%d%s", &h, &w, &rest); n != 2 || h < 8 || w < 8 || h > 20000 || w > 20000 {
		return fmt.Errorf("grid is %q, must be HEIGHTxWIDTH like 158x220, 8 to 20000 each", text)
	}
	*s = Size{Height: h, Width: w}
	return nil
}

// String returns the text that UnmarshalText reads; empty for the default size.
func (s Size) String() string {
	if s == (Size{}) {
		return ""
	}
	return fmt.Sprintf("%dx%d", s.Height, s.Width)
}

// MarshalText returns the text that UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Set reads a command-line flag.
func (s *Size) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// Type names the value in help texts.
func (s *Size) Type() string { return "HxW" }
