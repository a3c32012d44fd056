// Package enginetest opens the engine that tests run networks on.
//
// It knows nothing of networks, and is imported by tests only.
package enginetest

import (
	"log/slog"
	"testing"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/ort"
)

// Open returns ONNX Runtime on the processor with one thread, which is quickest
// where tests of other packages run at the same time. What it compiled is kept for
// the other tests of the package. It is closed after the
// test; where the library is absent the test is skipped with the reason.
func Open(t testing.TB) *engine.Engine {
	t.Helper()
	return OpenThreads(t, 1)
}

// OpenThreads is Open with a number of threads.
func OpenThreads(t testing.TB, threads int) *engine.Engine {
	t.Helper()
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	e, err := engine.Open(engine.ORT, engine.Config{Threads: threads, KeepSessions: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Finalize)
	return e
}
