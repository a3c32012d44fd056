package frugal

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestALargeHeapHasAQuarterOfGarbageAndASmallOneIsLeftAlone(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		inUse uint64
		want  int
	}{{0, 100}, {12 * mib, 100}, {64 * mib, 100}, {128 * mib, 50}, {256 * mib, 25}, {4096 * mib, 25}} {
		if got := percent(tt.inUse); got != tt.want {
			t.Errorf("percent(%d MiB) = %d, want %d", tt.inUse/mib, got, tt.want)
		}
	}
}

// Maps come and go beside some that stay: the heap stays near to those.
func TestGarbageDoesNotDoubleALargeHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(most))
	watch()
	const plane, stay = 8 << 20, 40
	var held [stay][]byte
	for i := range held {
		held[i] = make([]byte, plane)
	}
	runtime.GC()
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // for the cleanup
		if _, now := state(); now == least {
			break
		} else if time.Now().After(until) {
			t.Fatalf("the percentage is %d with %d MiB in use, want %d", now, plane*stay>>20, least)
		}
	}
	largest := uint64(0)
	for range 10 * stay {
		passing := make([]byte, plane)
		passing[0] = 1
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		largest = max(largest, m.HeapAlloc)
	}
	runtime.KeepAlive(held)
	if limit := uint64(plane * stay * 3 / 2); largest > limit {
		t.Errorf("with %d MiB in use the heap had up to %d MiB, want at most %d", plane*stay>>20, largest>>20, limit>>20)
	}
	t.Logf("up to %d MiB with %d in use", largest>>20, plane*stay>>20)
}
