package feed

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A day of the sea passes from one delivery to the next, and not while the feed
// rests: a service that keeps up has the lag of a live one.
func TestTheClockOfASeaIsThatOfItsDeliveries(t *testing.T) {
	dir := t.TempDir()
	f := &Feed{Product: "blk-chl", Grid: Size{16, 16}, Seed: 1, BacklogDays: 3, Interval: 15 * time.Second}
	if got := f.Clock(dir, time.Now()); !got.IsZero() {
		t.Errorf("before the first delivery it is %v", got)
	}
	if err := f.CatchUp(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, feedState))
	if err != nil {
		t.Fatal(err)
	}
	world, err := f.world()
	if err != nil {
		t.Fatal(err)
	}
	at, then := world.Schedule()[2].At, info.ModTime()
	for after, want := range map[time.Duration]time.Duration{0: 0, f.Interval / 2: 12 * time.Hour, f.Interval: 24 * time.Hour, time.Hour: 24 * time.Hour, -time.Hour: 0} {
		if got := f.Clock(dir, then.Add(after)); got.Sub(at.Add(want)).Abs() > time.Second {
			t.Errorf("%v after the last delivery it is %v, want %v", after, got, at.Add(want))
		}
	}
}

// A feed goes on from what an earlier program remembered, which knew no clock.
func TestAFeedOfAnEarlierProgramGoesOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, feedState), []byte(`{"next":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &Feed{Product: "blk-chl", Grid: Size{16, 16}, Seed: 1, BacklogDays: 3, Interval: time.Second}
	if got := f.Clock(dir, time.Now()); !got.IsZero() {
		t.Errorf("it is %v, and nothing says so", got)
	}
	if err := f.CatchUp(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	granules, err := filepath.Glob(filepath.Join(dir, "*.nc"))
	if err != nil || len(granules) != 1 {
		t.Errorf("%d granules were written, want the third only (%v)", len(granules), err)
	}
}
