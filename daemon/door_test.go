package daemon

import (
	"context"
	"errors"
	"testing"

	"lacuna/fetch"
)

func TestWorkThatNobodyWaitsForIsPutAsideForWhoComes(t *testing.T) {
	arrived := make(chan fetch.Granule)
	at := &door{arrived: arrived}
	until := func(ctx context.Context) error { // works until it is cancelled
		<-ctx.Done()
		return ctx.Err()
	}
	for i := range mostPut {
		go func() { arrived <- fetch.Granule{} }()
		if put, err := at.unless(t.Context(), until); !put || err != nil {
			t.Fatalf("time %d: put aside %v, %v, want that somebody came", i+1, put, err)
		}
	}
	// It must get done some time, though somebody waits again.
	go func() { arrived <- fetch.Granule{} }()
	if put, err := at.unless(t.Context(), func(ctx context.Context) error { return ctx.Err() }); put || err != nil {
		t.Errorf("after %d times: put aside %v, %v, want it done", mostPut, put, err)
	}
	if !at.look() {
		t.Error("the door is shut, want who waits let in")
	}
}

func TestWorkAtTheDoorEndsAsItDoesByItself(t *testing.T) {
	arrived := make(chan fetch.Granule)
	at := &door{arrived: arrived}
	failed := errors.New("no luck")
	if put, err := at.unless(t.Context(), func(context.Context) error { return failed }); put || !errors.Is(err, failed) {
		t.Errorf("put aside %v, %v, want its own error", put, err)
	}
	close(arrived) // nothing will come any more, which is no reason to drop what is in hand
	if put, err := at.unless(t.Context(), func(ctx context.Context) error { return ctx.Err() }); put || err != nil {
		t.Errorf("with the archive closed: put aside %v, %v, want it done", put, err)
	}
	if at.look() {
		t.Error("the door is open, want it shut with the archive")
	}
	if put, err := (*door)(nil).unless(t.Context(), func(context.Context) error { return nil }); put || err != nil {
		t.Errorf("without a door: %v, %v", put, err)
	}
}
