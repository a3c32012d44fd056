package slots

import (
	"context"
	"errors"
	"testing"
	"time"

	"lacuna/pipeline/ingest"
)

func TestAPlaceIsLeftToFilling(t *testing.T) {
	d := NewDecoders(nil)
	held, release := make(chan struct{}), make(chan struct{})
	hold := func() error { held <- struct{}{}; <-release; return nil }
	done := make(chan error)
	patient := d.Patient()
	for range Fills() {
		go func() { done <- patient.places.Within(t.Context(), patient.filled, hold) }()
		<-held
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if err := patient.places.Within(cut, patient.filled, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("one more who is patient: %v, want no place", err)
	}
	if err := d.places.Within(t.Context(), d.filled, func() error { return nil }); err != nil {
		t.Errorf("filling: %v, want the place that is left", err)
	}
	close(release)
	for range Fills() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The wait for a slot ends with its context, and the file is not blamed.
func TestWaitingForAPlaceEndsWithItsContext(t *testing.T) {
	d := NewDecoders(nil)
	for range cap(d.places.all) {
		d.places.all <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for _, d := range []Decoders{d, d.Patient()} {
		_, err := d.Read(ctx, "a.nc", ingest.Options{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Read() = %v, want the end of its context", err)
		}
		if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
			t.Errorf("the file was blamed: %v", bad)
		}
	}
}
