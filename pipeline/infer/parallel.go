package infer

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// each calls f for 0..n-1 on all cores and waits for the last call.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// chunkCells is how many cells a core takes at a time: enough to outweigh the
// scheduling, few enough that all cores end together.
const chunkCells = 1 << 14

// eachCell calls f for every cell on all cores. f must touch nothing but its
// cell.
func eachCell(cells int, f func(i int)) {
	each((cells+chunkCells-1)/chunkCells, func(k int) {
		for i := k * chunkCells; i < min((k+1)*chunkCells, cells); i++ {
			f(i)
		}
	})
}
