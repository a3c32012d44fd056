package partition

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

// counted paces by count: nothing depends on a clock.
var counted = PoolConfig{Size: 20, Uses: 3, Batch: 5}

func newTestPool(t testing.TB, by Strategy, cfg PoolConfig, first uint64) (*Pool, Windows) {
	t.Helper()
	_, train, _ := samplestest.Archive(t, 30, 16)
	from := Windows{train, train.Refs(16, 16, MinObservedCells), by}
	p, err := NewPool(t.Context(), from, cfg, noise.New(1, "pool"), first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, from
}

func take(t testing.TB, p *Pool, n int) []Item {
	t.Helper()
	out := make([]Item, n)
	for i := range out {
		var err error
		if out[i], err = p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// slow is a strategy that takes its time for a batch.
type slow struct {
	Strategy
	takes func(call int) time.Duration
	calls *atomic.Int64
}

func (s slow) Partition(ctx context.Context, patches []samples.Patch, stream noise.Stream) ([]Parts, error) {
	time.Sleep(s.takes(int(s.calls.Add(1))))
	return s.Strategy.Partition(ctx, patches, stream)
}

// checkItem fails where an item is no partition of its own window.
func checkItem(t testing.TB, from Windows, item Item) {
	t.Helper()
	context, query := field.Mask(item.Partition.Context).Count(), field.Mask(item.Partition.Query).Count()
	observed := from.Data.Cut(item.Ref).Observed()
	if context == 0 || query == 0 || context+query != field.Mask(observed).Count() {
		t.Fatalf("context of %d and query of %d cells for a window with %d observed", context, query, field.Mask(observed).Count())
	}
	for c, o := range observed {
		if (item.Partition.Context[c] || item.Partition.Query[c]) != o {
			t.Fatalf("the partition is not one of day %d", item.Ref.Day)
		}
	}
}

func TestPrimedPoolKeepsToItsShareAndNeverLetsTrainingWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share, step = 0.15, 7 * time.Millisecond
		var calls atomic.Int64
		by := slow{Coherent(), func(call int) time.Duration { return time.Duration(80+40*(call%3)) * time.Millisecond }, &calls}
		p, from := newTestPool(t, by, PoolConfig{Size: 20, Batch: 5, Prime: 10, Share: share}, 0)
		took := func() time.Duration {
			began := time.Now()
			item, err := p.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			checkItem(t, from, item)
			return time.Since(began)
		}
		if got, want := took(), 280*time.Millisecond; got != want {
			t.Errorf("primed after %v, want %v: two batches", got, want)
		}
		began := time.Now()
		for time.Since(began) < time.Minute {
			time.Sleep(step)
			if waited := took(); waited != 0 {
				t.Fatalf("a step waited for %v after %v", waited, time.Since(began))
			}
			// The batch under way may go beyond the share for as long as it takes.
			busy := p.Use().DrawSeconds
			if most := share*time.Since(began).Seconds() + 0.16; busy > most {
				t.Fatalf("%.2f s of drawing in %v", busy, time.Since(began))
			}
		}
		u := p.Use()
		if u.ShareOfTime < 0.9*share || u.ShareOfTime > 1.02*share {
			t.Errorf("drawing took %.3f of the time, want %.2f", u.ShareOfTime, share)
		}
		drawing := 5*int(calls.Load()) - u.Drawn // one batch may be under way
		if u.WaitSeconds != 0 || u.PrimeSeconds != 0.28 || drawing != 0 && drawing != 5 || u.Drawn < 300 {
			t.Errorf("use is %+v after %d batches", u, calls.Load())
		}
		if want := float64(u.Items) / float64(u.Drawn); u.MeanUses != want || u.Items < 8000 {
			t.Errorf("use is %+v", u)
		}
	})
}

func TestFreshPartitionsReplaceTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		by := slow{Coherent(), func(int) time.Duration { return 100 * time.Millisecond }, &calls}
		p, _ := newTestPool(t, by, PoolConfig{Size: 20, Batch: 5, Prime: 5, Share: 0.2}, 0)
		seen := map[*bool]time.Duration{} // when a partition, known by where its context lies, came first
		for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(time.Millisecond) {
			at := &take(t, p, 1)[0].Partition.Context[0]
			if _, known := seen[at]; !known {
				seen[at] = time.Since(began)
			}
			// Five come every half second, and twenty are kept: two seconds and
			// a little is the longest life.
			if age := time.Since(began) - seen[at]; age > 2100*time.Millisecond {
				t.Fatalf("a partition is used after %v", age)
			}
		}
		if len(seen) < 190 || len(seen) > 205 {
			t.Errorf("%d partitions were used in 20 s, want 200", len(seen))
		}
	})
}

func TestPrimingIsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		by := slow{Coherent(), func(int) time.Duration { return time.Minute }, &calls}
		p, _ := newTestPool(t, by, PoolConfig{Size: 100, Batch: 5, Prime: 100, PrimeSeconds: 90, Share: 0.15}, 0)
		began := time.Now()
		take(t, p, 1)
		if got := time.Since(began); got != 2*time.Minute {
			t.Errorf("the first item came after %v, want two batches of a minute", got)
		}
		take(t, p, 1000)
		if got := time.Since(began); got != 2*time.Minute {
			t.Errorf("items waited until %v", got)
		}
	})
}

func TestPausedTrainingIsNotMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		by := slow{Coherent(), func(int) time.Duration { return time.Second }, &calls}
		p, _ := newTestPool(t, by, PoolConfig{Size: 20, Batch: 5, Prime: 5, Share: 0.1}, 0)
		take(t, p, 1)
		time.Sleep(time.Hour)
		if calls.Load() != 2 {
			t.Errorf("%d batches were drawn while nobody took any, want the first and one ahead", calls.Load())
		}
		for range 100 { // ten seconds of training
			take(t, p, 1)
			time.Sleep(100 * time.Millisecond)
		}
		if calls.Load() > 3 {
			t.Errorf("%d batches were drawn within ten seconds of a pause, want one", calls.Load()-2)
		}
	})
}

func TestCountedPoolUsesEachPartitionAsOftenAsItSays(t *testing.T) {
	p, from := newTestPool(t, Coherent(), counted, 0)
	const items = 3000
	partitions, windows := map[*bool]int{}, map[samples.Ref]int{}
	for _, item := range take(t, p, items) {
		checkItem(t, from, item)
		partitions[&item.Partition.Context[0]]++
		windows[item.Ref]++
	}
	// A partition is drawn for three items; one in twenty is never chosen.
	if mean := float64(items) / float64(len(partitions)); mean < 3 || mean > 3.3 {
		t.Errorf("a partition was used %.2f times, want 3", mean)
	}
	for ref, n := range windows {
		if want := items / len(from.Refs); n < want/2 || n > want*2 {
			t.Errorf("the window of day %d came %d times, want about %d", ref.Day, n, want)
		}
	}
	if u := p.Use(); u.Items != items || u.DrawSeconds <= 0 || u.Strategy != "coherent" {
		t.Errorf("use is %+v", u)
	}
}

func TestCountedPoolGoesOnWhereATrainingStopped(t *testing.T) {
	whole, _ := newTestPool(t, Coherent(), counted, 0)
	items := take(t, whole, 400)
	for _, first := range []int{7, 31, 222} { // before the first fresh batch, after it, and when none of the first is left
		later, _ := newTestPool(t, Coherent(), counted, uint64(first))
		for i, item := range take(t, later, 100) {
			want := items[first+i]
			if item.Ref != want.Ref || !slices.Equal(item.Partition.Context, want.Partition.Context) {
				t.Fatalf("item %d differs in a pool that starts at %d", first+i, first)
			}
		}
	}
}

func TestSameWindowGetsDifferentContexts(t *testing.T) {
	p, from := newTestPool(t, Coherent(), counted, 0)
	contexts := map[samples.Ref][][]bool{}
	for _, item := range take(t, p, 24*len(from.Refs)/2) {
		known := contexts[item.Ref]
		fresh := true
		for _, c := range known {
			fresh = fresh && !slices.Equal(c, item.Partition.Context)
		}
		if fresh {
			contexts[item.Ref] = append(known, item.Partition.Context)
		}
	}
	for ref, known := range contexts {
		if len(known) < 2 {
			t.Errorf("the window of day %d was always split the same", ref.Day)
		}
	}
	if len(contexts) != len(from.Refs) {
		t.Errorf("%d of %d windows came", len(contexts), len(from.Refs))
	}
	distinct := 0
	for _, known := range contexts {
		distinct += len(known)
	}
	// One in twenty is never used, and the pool is up to three batches ahead.
	met := float64(distinct) / float64(len(contexts))
	if said := p.Use().PerWindow; said < met || said > met/0.85+float64(3*counted.Batch)/float64(len(contexts)) {
		t.Errorf("windows met %.2f contexts each, the pool says %.2f", met, said)
	}
}

type broken struct{}

func (broken) Name() string { return "broken" }

func (broken) Partition(context.Context, []samples.Patch, noise.Stream) ([]Parts, error) {
	return nil, errBroken
}

var errBroken = errors.New("out of order")

func TestPoolHandsOnTheErrorOfItsStrategy(t *testing.T) {
	for _, cfg := range []PoolConfig{counted, DefaultPool()} {
		p, _ := newTestPool(t, broken{}, cfg, 0)
		for range 2 {
			if _, err := p.Next(t.Context()); !errors.Is(err, errBroken) {
				t.Errorf("error is %v, want that of the strategy", err)
			}
		}
	}
}

func TestPoolSaysWhatIsWrongWithItsConfig(t *testing.T) {
	for _, c := range []PoolConfig{{}, {Size: 1, Batch: 1}, {Size: 1, Batch: 1, Share: 1}, {Size: 1, Batch: 1, Share: 0.5, Prime: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := errors.Join(DefaultPool().Validate(), counted.Validate()); err != nil {
		t.Error(err)
	}
}

// A pool changes when partitions are drawn, not which: those it hands out have
// the context share of fresh ones, within the noise of their number.
func TestPoolHandsOutWhatFreshDrawsGive(t *testing.T) {
	p, from := newTestPool(t, Coherent(), PoolConfig{Size: 400, Batch: 20, Uses: 1}, 0)
	share := func(part Parts) float64 {
		return float64(field.Mask(part.Context).Count()) / float64(field.Mask(part.Context).Count()+field.Mask(part.Query).Count())
	}
	const items = 4000
	var pooled, fresh, squares float64
	for i, item := range take(t, p, items) {
		pooled += share(item.Partition) / items
		one, err := from.By.Partition(t.Context(), []samples.Patch{from.Data.Cut(from.Refs[i%len(from.Refs)])}, noise.New(uint64(i), "fresh"))
		if err != nil {
			t.Fatal(err)
		}
		s := share(one[0])
		fresh += s / items
		squares += s * s / items
	}
	// Two means of which one has fewer independent draws than items: 2·SE each.
	within := 5 * math.Sqrt(3*(squares-fresh*fresh)/items)
	if math.Abs(pooled-fresh) > within {
		t.Errorf("context share %.4f from the pool, %.4f fresh, want them within %.4f", pooled, fresh, within)
	}
}
