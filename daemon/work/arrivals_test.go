package work

import (
	"context"
	"errors"
	"testing"

	"lacuna/fetch"
)

func TestWorkThatNobodyWaitsForIsInterruptedByAnArrival(t *testing.T) {
	arrived := make(chan fetch.Granule)
	at := &arrivals{granules: arrived}
	until := func(ctx context.Context) error { // works until it is cancelled
		<-ctx.Done()
		return ctx.Err()
	}
	for i := range mostInterrupted {
		if at.pressed() {
			t.Errorf("after %d times the work is in a hurry", i)
		}
		go func() { arrived <- fetch.Granule{} }()
		if interrupted, err := at.interrupt(t.Context(), until); !interrupted || err != nil {
			t.Fatalf("time %d: interrupted %v, %v, want that a granule came", i+1, interrupted, err)
		}
	}
	if !at.pressed() {
		t.Error("what is done whatever arrives is not in a hurry")
	}
	// It must be done at last, though another granule waits.
	go func() { arrived <- fetch.Granule{} }()
	if interrupted, err := at.interrupt(t.Context(), func(ctx context.Context) error { return ctx.Err() }); interrupted || err != nil {
		t.Errorf("after %d times: interrupted %v, %v, want it done", mostInterrupted, interrupted, err)
	}
	if !at.goOn() {
		t.Error("nothing goes on, want the waiting granule admitted")
	}
}

func TestWorkThatNothingInterruptsEndsAsItDoesByItself(t *testing.T) {
	arrived := make(chan fetch.Granule)
	at := &arrivals{granules: arrived}
	failed := errors.New("no luck")
	if interrupted, err := at.interrupt(t.Context(), func(context.Context) error { return failed }); interrupted || !errors.Is(err, failed) {
		t.Errorf("interrupted %v, %v, want its own error", interrupted, err)
	}
	close(arrived) // the watcher has ended, which does not interrupt the work in hand
	if interrupted, err := at.interrupt(t.Context(), func(ctx context.Context) error { return ctx.Err() }); interrupted || err != nil {
		t.Errorf("with the archive closed: interrupted %v, %v, want it done", interrupted, err)
	}
	if at.goOn() {
		t.Error("work goes on, want it to end with the archive")
	}
	if interrupted, err := (*arrivals)(nil).interrupt(t.Context(), func(context.Context) error { return nil }); interrupted || err != nil {
		t.Errorf("without arrivals: %v, %v", interrupted, err)
	}
}
