package engine

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// action is the kernel's struct sigaction on Linux.
type action struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

const onStack = 0x08000000 // SA_ONSTACK

func sigaction(t *testing.T, set, get *action) {
	t.Helper()
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTERM),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), unsafe.Sizeof(uint64(0)), 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
}

// TestSignalsSurviveALibrary takes the handler of SIGTERM off the stack for
// signals, as a library does that knows nothing of Go, in a process of its own:
// unless that is mended the runtime ends it.
func TestSignalsSurviveALibrary(t *testing.T) {
	if what := os.Getenv("LACUNA_TEST_SIGNALS"); what != "" {
		terminateBeside(t, what == "mended")
		return
	}
	for what, dies := range map[string]bool{"left": true, "mended": false} {
		t.Run(what, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignalsSurviveALibrary$")
			cmd.Env = append(os.Environ(), "LACUNA_TEST_SIGNALS="+what)
			said, err := cmd.CombinedOutput()
			if dies != (err != nil) || dies != strings.Contains(string(said), "SA_ONSTACK") {
				t.Errorf("it died: %v, should have: %v\n%s", err, dies, said)
			}
		})
	}
}

func terminateBeside(t *testing.T, mended bool) {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM)
	var now action
	sigaction(t, nil, &now)
	now.flags &^= onStack
	sigaction(t, &now, nil)
	if mended {
		if n := mendSignals(); n != 1 {
			t.Fatalf("%d handlers were mended, not 1", n)
		}
		if n := mendSignals(); n != 0 {
			t.Fatalf("%d handlers were changed that were right", n)
		}
	}
	// To this thread, which is on the stack of a goroutine: an idle one has the
	// system's, which is large enough by luck.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, _, _ := syscall.RawSyscall(syscall.SYS_GETTID, 0, 0, 0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), thread, uintptr(syscall.SIGTERM)); errno != 0 {
		t.Fatal(errno)
	}
	select {
	case <-stopped:
	case <-time.After(2 * time.Minute):
		t.Fatal("the signal did not arrive")
	}
}
