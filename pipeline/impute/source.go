package impute

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
)

// A Lesson names a patch and says what of it is shown and what is asked.
type Lesson struct {
	Ref            samples.Ref
	Context, Query []bool
	// Key is the same for lessons of the same source with the same patch and
	// context, so that what was made of them can be kept; 0: never the same.
	Key uint64
}

// A Source gives lessons by number: the same number gives the same lesson, in
// whatever order and from however many goroutines it is asked.
type Source interface {
	Lesson(ctx context.Context, n uint64) (Lesson, error)
}

// Fresh returns a source that draws a patch of refs and its partition anew for
// every lesson: for partitioners that cost little.
func Fresh(days Days, refs []samples.Ref, p prior.Partitioner, seed uint64) (Source, error) {
	if len(refs) == 0 {
		return nil, errNoRefs
	}
	return fresh{days: days, refs: refs, partitioner: p, stream: noise.New(seed, "lessons", p.Name())}, nil
}

// Repeated is Fresh with so many partitions of each patch and no more, so that
// what is made of a context, such as an analysis, can be kept and used again.
func Repeated(days Days, refs []samples.Ref, p prior.Partitioner, perPatch int, seed uint64) (Source, error) {
	if len(refs) == 0 {
		return nil, errNoRefs
	}
	if perPatch < 1 {
		return nil, fmt.Errorf("%d partitions a patch, must be at least one", perPatch)
	}
	return fresh{days: days, refs: refs, partitioner: p, stream: noise.New(seed, "lessons", p.Name()), perPatch: perPatch}, nil
}

var errNoRefs = errors.New("no patch to learn from: give days with more observations, or smaller patches")

type fresh struct {
	days        Days
	refs        []samples.Ref
	partitioner prior.Partitioner
	stream      noise.Stream
	perPatch    int // partitions; 0: a new one each time
}

// Lesson implements Source.
func (f fresh) Lesson(ctx context.Context, n uint64) (Lesson, error) {
	stream, key := f.stream.Sub(n), uint64(0)
	r := stream.Rand(0)
	patch := r.IntN(len(f.refs))
	if f.perPatch > 0 {
		// Far from the numbers of lessons, so that no stream serves both.
		const drawn = 1 << 40
		key = uint64(patch*f.perPatch+r.IntN(f.perPatch)) + 1
		stream = f.stream.Sub(drawn + key)
	}
	ref := f.refs[patch]
	parts, err := f.partitioner.Partition(ctx, []samples.Patch{f.days.Cut(ref)}, stream)
	if err != nil {
		return Lesson{}, fmt.Errorf("draw lesson %d: %w", n, err)
	}
	return Lesson{Ref: ref, Context: parts[0].Context, Query: parts[0].Query, Key: key}, nil
}

// Queue returns a source of the items that next hands out one after the other,
// such as those of a prior.Pool; the first of them is number first. next is
// called by one goroutine at a time. A lesson can be had once.
func Queue(next func(ctx context.Context) (prior.Item, error), first uint64) Source {
	return &queue{next: next, at: first, early: map[uint64]Lesson{}}
}

type queue struct {
	next func(ctx context.Context) (prior.Item, error)

	mu    sync.Mutex
	at    uint64            // number of the next item
	early map[uint64]Lesson // taken from next but not asked for yet
}

// Lesson implements Source.
func (q *queue) Lesson(ctx context.Context, n uint64) (Lesson, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.at <= n {
		item, err := q.next(ctx)
		if err != nil {
			return Lesson{}, fmt.Errorf("draw lesson %d: %w", q.at, err)
		}
		q.early[q.at] = Lesson{Ref: item.Ref, Context: item.Partition.Context, Query: item.Partition.Query}
		q.at++
	}
	l, ok := q.early[n]
	if !ok {
		return Lesson{}, fmt.Errorf("lesson %d was handed out already, or lies before the first", n)
	}
	delete(q.early, n)
	return l, nil
}

// Everything returns a source whose context is all that is observed, and whose
// query is the same: no partition at all, as MissDiff trains.
func Everything(days Days, refs []samples.Ref, seed uint64) (Source, error) {
	return Fresh(days, refs, everything{}, seed)
}

type everything struct{}

// Name implements prior.Partitioner.
func (everything) Name() string { return "everything" }

// Partition implements prior.Partitioner.
func (everything) Partition(_ context.Context, patches []samples.Patch, _ noise.Stream) ([]prior.Partition, error) {
	out := make([]prior.Partition, len(patches))
	for i, p := range patches {
		observed := p.Observed()
		out[i] = prior.Partition{Context: observed, Query: observed}
	}
	return out, nil
}
