//go:build race

package ingest

// raceEnabled makes tests that count cells by the million do less: the race
// detector makes them ten times slower and finds nothing in pure loops.
const raceEnabled = true
