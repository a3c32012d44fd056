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
	}{{0, 100}, {12 * mib, 100}, {64 * mib, 100}, {128 * mib, 50}, {256 * mib, 25}, {640 * mib, 25}, {1024 * mib, 15}, {1600 * mib, 10}, {4096 * mib, 10}} {
		if got := percent(tt.inUse); got != tt.want {
			t.Errorf("percent(%d MiB) = %d, want %d", tt.inUse/mib, got, tt.want)
		}
	}
}

// A large heap may grow by a quarter before it is collected, and a small one is left alone
// again when the maps are gone. What the heap grows to while a collection is under way is
// the machine's affair, and not looked at.
func TestALargeHeapIsCollectedBeforeItDoubles(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(most))
	watch()
	const plane, stay = 8 << 20, 40
	held := make([][]byte, stay)
	for i := range held {
		held[i] = make([]byte, plane)
	}
	await(t, usual)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if inUse, limit := uint64(plane*stay), uint64(plane*stay*3/2); m.NextGC < inUse || m.NextGC > limit {
		t.Errorf("with %d MiB in use the heap is collected at %d MiB, want at most %d", inUse>>20, m.NextGC>>20, limit>>20)
	}
	runtime.KeepAlive(held) // and no longer
	await(t, most)
}

// await collects until a percentage is set.
func await(t *testing.T, want int) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // for the cleanup
		runtime.GC()
		inUse, now := state()
		if now == want {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the percentage is %d with %d MiB in use, want %d", now, inUse>>20, want)
		}
	}
}
