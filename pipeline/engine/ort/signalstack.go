package ort

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signalStack is the kernel's stack_t on Linux.
type signalStack struct {
	base  uintptr
	flags int32
	_     int32
	size  uintptr
}

// keepingSignalStack calls f and gives its thread the stack for signals back that it had.
// OpenVINO puts one of its own in its place when it is loaded and frees that when it is
// unloaded, whichever thread that happens on: the next signal to the first thread, such as
// Go's runtime sends to share the processor, then ends the process.
func keepingSignalStack(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before signalStack
	if err := exchangeSignalStack(nil, &before); err != nil {
		return err
	}
	err = f()
	if back := exchangeSignalStack(&before, nil); err == nil {
		err = back
	}
	return err
}

// exchangeSignalStack sets the stack for signals of this thread, unless set is nil, and
// reads the one before, unless get is nil.
func exchangeSignalStack(set, get *signalStack) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SIGALTSTACK, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0); errno != 0 {
		return fmt.Errorf("exchange the stack for signals: %w", errno)
	}
	return nil
}
