package ort

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// threadsVariable limits the threads of numerical programs by custom, also on
// machines that are shared by means of a batch system.
const threadsVariable = "OMP_NUM_THREADS"

// usualThreads is how many threads share one operator where nobody says: as many as
// the environment allows to a numerical program, or else one for each core. A thread
// that waits for the others does so in a loop, and takes the time of whatever else
// the core could do.
func usualThreads() int {
	cores := runtime.GOMAXPROCS(0)
	outermost, _, _ := strings.Cut(os.Getenv(threadsVariable), ",") // one number for each level of nesting
	if n, err := strconv.Atoi(outermost); err == nil && n > 0 {
		return min(n, cores)
	}
	return cores
}
