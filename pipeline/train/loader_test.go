package train

import (
	"context"
	"sync/atomic"
	"testing"

	"lacuna/pipeline/engine/enginetest"
)

func TestBatchesComeInOrderAndHoldTheirOwnExamples(t *testing.T) {
	task := lineTask(2)
	task.Workers, task.Optimizer.Steps = 5, 40
	var most, now atomic.Int64
	task.Fill = func(_ context.Context, b *Batch, item int, n uint64) error {
		if at := now.Add(1); at > most.Load() {
			most.Store(at)
		}
		b.Buffers[0][item] = float32(n)
		now.Add(-1)
		return nil
	}
	const first = 3
	l := startLoader(t.Context(), enginetest.OpenThreads(t, 1), task, first)
	defer l.stop()
	for step := first; step < task.Optimizer.Steps; step++ {
		b, err := l.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for item, n := range b.Buffers[0] {
			if int(n) != step*4+item {
				t.Fatalf("example %d of batch %d is number %v, want %d", item, step, n, step*4+item)
			}
		}
		l.done(b)
	}
	if most.Load() > int64(task.Workers) {
		t.Errorf("%d batches were filled at a time by %d workers", most.Load(), task.Workers)
	}
}

func TestAStoppedLoaderLeavesNothingBehind(t *testing.T) {
	task := lineTask(2)
	engine := enginetest.OpenThreads(t, 1)
	for _, taken := range []int{0, 1, 4} {
		ctx, cancel := context.WithCancel(t.Context())
		var held atomic.Int64
		task.Fill = func(ctx context.Context, _ *Batch, item int, n uint64) error {
			held.Add(1)
			defer held.Add(-1)
			if n < 4*4 {
				return nil
			}
			<-ctx.Done() // a queue that is empty
			return ctx.Err()
		}
		l := startLoader(ctx, engine, task, 0)
		for range taken {
			b, err := l.next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			l.done(b)
		}
		cancel()
		l.stop()
		if held.Load() != 0 {
			t.Errorf("after %d batches, %d fillers are still at work", taken, held.Load())
		}
	}
}

func TestAStepIsTimedWithoutItsLoader(t *testing.T) {
	task := lineTask(2)
	var filled atomic.Int64
	fill := task.Fill
	task.Fill = func(ctx context.Context, b *Batch, item int, n uint64) error {
		filled.Add(1)
		return fill(ctx, b, item, n)
	}
	step := stepOf(t, task)
	took, err := Time(t.Context(), step, task, 3)
	if err != nil || took <= 0 {
		t.Errorf("a step takes %v, %v", took, err)
	}
	if filled.Load() != 4 {
		t.Errorf("%d examples were made, want those of one batch", filled.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Time(ctx, step, task, 3); err == nil {
		t.Error("it went on when it was cancelled")
	}
}
