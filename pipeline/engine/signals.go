package engine

/*
#include <signal.h>

// Has every handler of this process run on the stack for signals, and returns how
// many did not.
static int lacuna_on_signal_stack(void) {
	int mended = 0;
	for (int number = 1; number < NSIG; number++) {
		struct sigaction now;
		if (sigaction(number, 0, &now) != 0 || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || (now.sa_flags & SA_ONSTACK))
			continue;
		now.sa_flags |= SA_ONSTACK;
		mended += sigaction(number, &now, 0) == 0;
	}
	return mended;
}
*/
import "C"

// mendSignals has the signal handlers of libraries run where Go can bear them,
// and returns how many it had to change. One of those that XLA for CUDA loads
// takes SIGTERM off the stack for signals, to that of the goroutine which is
// interrupted. Go's are too small for that, so the runtime ends the process: a
// training that was to stop with a checkpoint died without one. It is not known
// whether that happens when it is loaded or when it compiles, so this is called
// after both.
func mendSignals() int {
	return int(C.lacuna_on_signal_stack())
}
