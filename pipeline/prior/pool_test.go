package prior

import (
	"context"
	"errors"
	"testing"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

func newTestPool(t testing.TB, by Partitioner, first uint64) (*Pool, []samples.Ref) {
	t.Helper()
	_, train, _ := archive(t, 30, 16)
	refs := train.Refs(16, 16, MinObservedCells)
	p, err := NewPool(t.Context(), Windows{train, refs, by}, PoolConfig{Size: 8, Uses: 3, Batch: 5}, noise.New(1, "pool"), first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, refs
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

func TestPoolUsesEachPartitionAsOftenAsItSays(t *testing.T) {
	p, refs := newTestPool(t, Coherent(), 0)
	items := take(t, p, 2*8*3)
	for g := range 2 {
		uses := map[*bool]int{} // a partition is known by where its context lies
		windows := map[samples.Ref]int{}
		for _, item := range items[g*24 : (g+1)*24] {
			uses[&item.Partition.Context[0]]++
			windows[item.Ref]++
		}
		if len(uses) != 8 {
			t.Errorf("generation %d has %d partitions, want 8", g, len(uses))
		}
		for _, n := range uses {
			if n != 3 {
				t.Errorf("a partition of generation %d was used %d times, want 3", g, n)
			}
		}
		for _, n := range windows {
			if n > 3 && len(refs) >= 16 {
				t.Errorf("a window came %d times in generation %d", n, g)
			}
		}
	}
	if u := p.Use(); u.Items != 48 || u.DrawSeconds <= 0 || u.Strategy != "coherent" {
		t.Errorf("use is %+v", u)
	}
}

func TestPoolGoesOnWhereATrainingStopped(t *testing.T) {
	whole, _ := newTestPool(t, Coherent(), 0)
	items := take(t, whole, 60)
	later, _ := newTestPool(t, Coherent(), 31)
	for i, item := range take(t, later, 29) {
		want := items[31+i]
		if item.Ref != want.Ref || !equalMasks(item.Partition.Context, want.Partition.Context) {
			t.Fatalf("item %d differs in a pool that starts at 31", 31+i)
		}
	}
}

func TestSameWindowGetsDifferentContexts(t *testing.T) {
	p, refs := newTestPool(t, Coherent(), 0)
	contexts := map[samples.Ref][][]bool{}
	for _, item := range take(t, p, 24*len(refs)/2) {
		known := contexts[item.Ref]
		fresh := true
		for _, c := range known {
			fresh = fresh && !equalMasks(c, item.Partition.Context)
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
	if len(contexts) != len(refs) {
		t.Errorf("%d of %d windows came", len(contexts), len(refs))
	}
}

type broken struct{}

func (broken) Name() string { return "broken" }

func (broken) Partition(context.Context, []samples.Patch, noise.Stream) ([]Partition, error) {
	return nil, errBroken
}

var errBroken = errors.New("out of order")

func TestPoolHandsOnTheErrorOfItsStrategy(t *testing.T) {
	p, _ := newTestPool(t, broken{}, 0)
	for range 2 {
		if _, err := p.Next(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("error is %v, want that of the strategy", err)
		}
	}
}
