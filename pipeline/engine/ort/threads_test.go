package ort

import (
	"runtime"
	"testing"
)

func TestTheEnvironmentLimitsThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for value, want := range map[string]int{"": 4, "1": 1, "3": 3, "64": 4, "0": 4, "-2": 4, "2,1": 2} {
		t.Setenv(threadsVariable, value)
		if got := usualThreads(); got != want {
			t.Errorf("%s=%q: %d threads, want %d", threadsVariable, value, got, want)
		}
	}
}
