package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lacuna/internal/pause"
)

func TestPauseLastsAsLongAsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !pause.For(t.Context(), time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("it ended after %v, want a minute", time.Since(start))
		}
	})
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if pause.For(ctx, time.Minute) || time.Since(start) != time.Second {
			t.Errorf("it ended after %v, want a second", time.Since(start))
		}
	})
}
