package retrain

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/simulate"
)

// burn stands in for a training that takes every core it gets.
const burn = `
echo '{"event":"start"}'
trap 'kill $(jobs -p); exit 1' TERM
for i in 1 2 3 4; do while :; do :; done & done
wait`

// A granule that comes while a model is trained on the same cores is filled in
// at most one and a half times the time without a training. The two are timed
// by turns, so that other load on the machine meets both.
func TestFillingIsHardlySlowerWhileAModelIsTrained(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("a timing: set LACUNA_LONG=1 on a quiet machine")
	}
	series := classical.Series{}
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 48, Width: 64, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for d := range 12 {
		day := w.Day(d).Seen
		series.Grid = day.Grid
		series.Frames = append(series.Frames, classical.Frame{Time: day.Time, Values: day.Values})
	}
	series.Sea = w.Sea()
	oi := classical.DefaultOI(series.Grid)
	trainer := &Process{nice: DefaultConfig().Nice}
	ctx, stop := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = trainer.Run(ctx, shell(burn), nil, func(Event) { close(started) }) // it is stopped
	}()
	<-started
	defer func() { stop(); <-ended }()
	fill := func() time.Duration {
		began := time.Now()
		if _, err := oi.Fill(series, 11, nil); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	const rounds = 25
	var idle, paused, shared []time.Duration
	for range rounds {
		release := trainer.Hold()
		time.Sleep(20 * time.Millisecond) // the training is paused
		idle = append(idle, fill())
		release()
		time.Sleep(50 * time.Millisecond) // the training is at work again
		began := time.Now()
		release = trainer.Hold()
		fill()
		paused = append(paused, time.Since(began))
		release()
		time.Sleep(50 * time.Millisecond)
		shared = append(shared, fill())
	}
	ratio := float64(median(paused)) / float64(median(idle))
	t.Logf("medians of %d: %v idle, %v with a training that is paused (%.2f), %v beside one that is only polite (%.2f)", rounds,
		median(idle), median(paused), ratio, median(shared), float64(median(shared))/float64(median(idle)))
	if ratio > 1.5 {
		t.Errorf("filling takes %.2f times as long while a model is trained, must be at most 1.5", ratio)
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}
