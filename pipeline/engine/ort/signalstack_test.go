package ort

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestAThreadKeepsItsStackForSignals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, within, after signalStack
	if err := exchangeSignalStack(nil, &before); err != nil {
		t.Fatal(err)
	}
	other, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(other) }()
	failed := errors.New("the library was not loaded")
	err = keepingSignalStack(func() error {
		theirs := signalStack{base: uintptr(unsafe.Pointer(&other[0])), size: uintptr(len(other))}
		if err := exchangeSignalStack(&theirs, nil); err != nil {
			t.Fatal(err)
		}
		if err := exchangeSignalStack(nil, &within); err != nil {
			t.Fatal(err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("the error is %v, want %v", err, failed)
	}
	if err := exchangeSignalStack(nil, &after); err != nil {
		t.Fatal(err)
	}
	if within.base == before.base || after != before {
		t.Errorf("the stack is %+v, within %+v, before %+v", after, within, before)
	}
}
