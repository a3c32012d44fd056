// Package frugal keeps a large heap near to what is in use. Go lets a heap grow to
// twice that before it collects, which spares a small heap work; a large one is here
// mostly maps of numbers, without pointers, and looking through it is next to nothing.
//
// It does not know who uses the memory.
package frugal

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage a heap may have beside what is in use: as much again up to 64 MiB,
// then spare bytes, from 256 MiB on a quarter, from 640 MiB on enough bytes, and from
// 1.6 GiB on a tenth.
const (
	least, usual, most = 10, 25, 100 // percent
	spare, enough      = 64 << 20, 160 << 20
)

// Start has the heap kept small for as long as the process lives, unless its
// environment says what is to be done (GOGC, GOMEMLIMIT).
func Start() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		watch()
	}
}

// LetGo gives back so many bytes that nobody holds any more, where they are much: the
// collector would keep them for what comes next, which may be small, or not Go's.
func LetGo(bytes int) {
	if bytes > enough {
		debug.FreeOSMemory()
	}
}

// watch sets the percentage for what is in use after every collection.
func watch() {
	// What nobody holds is gone with the next collection.
	sentinel := new([64]byte)
	runtime.AddCleanup(sentinel, func(struct{}) {
		inUse, now := state()
		if then := percent(inUse); then != now {
			debug.SetGCPercent(then)
		}
		watch()
	}, struct{}{})
}

// percent returns how much garbage there may be beside so many bytes.
func percent(inUse uint64) int {
	if inUse == 0 {
		return most
	}
	large := min(max(enough*100/inUse, least), usual)
	return int(min(max(spare*100/inUse, large), most))
}

// state returns the bytes that the last collection has left, and the percentage that is
// set.
func state() (inUse uint64, now int) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), int(samples[1].Value.Uint64())
}
