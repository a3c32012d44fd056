package learn

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
)

// An Example names a patch with the cells that are shown and those that are asked.
type Example struct {
	Ref            samples.Ref
	Context, Query []bool
	// Key is the same for examples with the same patch and context, and for no
	// others of the same days, so that their analyses can be kept; 0:
	// the example does not come up again.
	Key uint64
}

// A Source gives examples by number: the same number gives the same example, in
// whatever order and from however many goroutines it is asked.
type Source interface {
	Example(ctx context.Context, n uint64) (Example, error)
}

// Fresh returns a source that draws a patch of refs and its partition anew for
// every example: for partitioners that cost little.
func Fresh(days impute.Days, refs []samples.Ref, p partition.Strategy, seed uint64) (Source, error) {
	if len(refs) == 0 {
		return nil, errNoRefs
	}
	// The names of the streams stay: others would give other weights.
	return fresh{days: days, refs: refs, partitioner: p, stream: noise.New(seed, "lessons", p.Name())}, nil
}

// Repeated is Fresh with so many partitions of each patch and no more, so that
// the analysis of a context can be kept and used again.
// The partitions are the same for every seed; the order of examples is not.
func Repeated(days impute.Days, refs []samples.Ref, p partition.Strategy, perPatch int, seed uint64) (Repetition, error) {
	if len(refs) == 0 {
		return Repetition{}, errNoRefs
	}
	if perPatch < 1 {
		return Repetition{}, fmt.Errorf("%d partitions a patch, must be at least one", perPatch)
	}
	return Repetition{
		days: days, refs: refs, partitioner: p, perPatch: perPatch,
		order: noise.New(seed, "order of lessons"), partitions: noise.New(1, "partitions", p.Name()), drawn: &sync.Map{},
	}, nil
}

var errNoRefs = errors.New("no patch to learn from: give days with more observations, or smaller patches")

type fresh struct {
	days        impute.Days
	refs        []samples.Ref
	partitioner partition.Strategy
	stream      noise.Stream
}

// Example implements Source.
func (f fresh) Example(ctx context.Context, n uint64) (Example, error) {
	stream := f.stream.Sub(n)
	ref := f.refs[stream.Rand(0).IntN(len(f.refs))]
	parts, err := f.partitioner.Partition(ctx, []samples.Patch{f.days.Cut(ref)}, stream)
	if err != nil {
		return Example{}, fmt.Errorf("draw example %d: %w", n, err)
	}
	return Example{Ref: ref, Context: parts[0].Context, Query: parts[0].Query}, nil
}

// A Repetition is a source of a fixed set of examples in random order.
type Repetition struct {
	days              impute.Days
	refs              []samples.Ref
	partitioner       partition.Strategy
	perPatch          int
	order, partitions noise.Stream
	drawn             *sync.Map // Example by number: drawing one takes as long as encoding it
}

// Example implements Source.
func (s Repetition) Example(ctx context.Context, n uint64) (Example, error) {
	r := s.order.Rand(n)
	l, err := s.partition(ctx, r.IntN(len(s.refs)), r.IntN(s.perPatch))
	if err != nil {
		return Example{}, fmt.Errorf("draw example %d: %w", n, err)
	}
	return l, nil
}

// partition returns partition k of a patch.
func (s Repetition) partition(ctx context.Context, patch, k int) (Example, error) {
	number := patch*s.perPatch + k
	if known, ok := s.drawn.Load(number); ok {
		return known.(Example), nil
	}
	ref := s.refs[patch]
	h := fnv.New64a()
	fmt.Fprint(h, s.partitioner.Name(), ref, k)
	key := max(h.Sum64(), 1)
	parts, err := s.partitioner.Partition(ctx, []samples.Patch{s.days.Cut(ref)}, s.partitions.Sub(key))
	if err != nil {
		return Example{}, err
	}
	e := Example{Ref: ref, Context: parts[0].Context, Query: parts[0].Query, Key: key}
	s.drawn.Store(number, e)
	return e, nil
}

// Queue returns a source of the items that next hands out one after the other,
// such as those of a partition.Pool; the first of them is number first. next is
// called by one goroutine at a time. An example can be had once.
func Queue(next func(ctx context.Context) (partition.Item, error), first uint64) Source {
	return &queue{next: next, at: first, early: map[uint64]Example{}}
}

type queue struct {
	next func(ctx context.Context) (partition.Item, error)

	mu    sync.Mutex
	at    uint64             // number of the next item
	early map[uint64]Example // taken from next but not asked for yet
}

// Example implements Source.
func (q *queue) Example(ctx context.Context, n uint64) (Example, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.at <= n {
		item, err := q.next(ctx)
		if err != nil {
			return Example{}, fmt.Errorf("draw example %d: %w", q.at, err)
		}
		q.early[q.at] = Example{Ref: item.Ref, Context: item.Partition.Context, Query: item.Partition.Query, Key: contextKey(item)}
		q.at++
	}
	l, ok := q.early[n]
	if !ok {
		return Example{}, fmt.Errorf("example %d was handed out already, or lies before the first", n)
	}
	delete(q.early, n)
	return l, nil
}

// contextKey returns a key of the patch and the context of an item. A pool hands
// the same partition out many times: its analysis is then made once.
func contextKey(item partition.Item) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, "item", item.Ref)
	cells := make([]byte, len(item.Partition.Context))
	for i, visible := range item.Partition.Context {
		if visible {
			cells[i] = 1
		}
	}
	h.Write(cells)
	return max(h.Sum64(), 1)
}
