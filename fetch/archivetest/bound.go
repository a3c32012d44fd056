package archivetest

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"lacuna/fetch"
)

// Many is the number of entries of the hosts of these tests, which make them up
// as they are read.
const Many = 10_000_000

// flatBytes is the allowed growth of the heap over a listing with a bound of a
// few thousand entries, the host in this process included: one buffer of 16 MiB
// and garbage that is not collected yet. Ten million entries take gigabytes.
const flatBytes = 64 << 20

// CheckBounded lists an archive with far more entries than it may have, bounded
// by most. The listing must stop with an error that names setting, soon, and
// the memory that it takes must not depend on how many entries there are.
func CheckBounded(t *testing.T, archive fetch.Archive, setting string, most int) {
	t.Helper()
	if testing.Short() {
		t.Skip("measures memory, of which the race detector takes its own")
	}
	var objects []fetch.Object
	var err error
	began := time.Now()
	grown := heapGrowth(func() { objects, err = archive.List(t.Context(), fetch.Scope{}) })
	t.Logf("the heap grew by %.1f MiB in %v", float64(grown)/(1<<20), time.Since(began).Round(time.Millisecond))
	if !errors.Is(err, fetch.ErrUnacceptable) || !strings.Contains(err.Error(), setting) {
		t.Errorf("List() = %v, want an error that names %s", err, setting)
	}
	if len(objects) > most {
		t.Errorf("List() shows %d objects, more than %d", len(objects), most)
	}
	if grown > flatBytes {
		t.Errorf("the heap grew by %d MiB, more than %d", grown>>20, flatBytes>>20)
	}
}

// heapGrowth returns by how much the heap was larger during work than before.
func heapGrowth(work func()) int64 {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	work()
	close(stop)
	return int64(<-peak) - int64(before.HeapAlloc)
}
