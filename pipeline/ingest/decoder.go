package ingest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A decoder is a program that does nothing but RunChild, and so starts in half the time
// of a program that can do more.
type decoder struct {
	argv []string // that it stands in for
	find func() (path string, err error)

	once sync.Once
	path string // empty: it does not run here
}

// stand is the decoder of this process; nil: it has none.
var stand atomic.Pointer[decoder]

// DecodeBy has every reader of this process whose command line is argv start another
// program in its place, which must do nothing but RunChild. It is found and tried when
// the first file is decoded; where it does not run, for want of a library or of leave to
// run what is in memory, argv goes on to be started.
func DecodeBy(argv []string, find func() (path string, err error)) {
	stand.Store(&decoder{argv: slices.Clone(argv), find: find})
}

// InMemory returns a function that puts a program into memory and returns its path. The
// program is there for as long as this process is, and nobody can change it.
func InMemory(program []byte) func() (path string, err error) {
	return func() (string, error) {
		path, err := putInMemory(program)
		if err != nil {
			return "", fmt.Errorf("put the decoder into memory: %w", err)
		}
		return path, nil
	}
}

// firstFree is a descriptor that no child has been given: those of a decoder end with
// socketDescriptor.
const firstFree = socketDescriptor + 1

func putInMemory(program []byte) (path string, err error) {
	const name, flags = "lacuna-decoder", unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	low, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if err != nil { // a kernel before 6.3 does not know that flag, and lets all be run
		low, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return "", err
	}
	defer unix.Close(low)
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, firstFree)
	if err != nil {
		return "", err
	}
	for len(program) > 0 && err == nil {
		var n int
		n, err = unix.Write(fd, program)
		program = program[max(n, 0):]
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = unix.Close(fd)
		return "", err
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), nil
}

// programOf returns the program that a command line starts: that of argv, or the
// decoder that stands in for it.
func programOf(argv []string) string {
	d := stand.Load()
	if d == nil || !slices.Equal(d.argv, argv) {
		return argv[0]
	}
	d.once.Do(func() {
		if path, err := d.find(); err == nil && runs(path, argv) {
			d.path = path
		}
	})
	if d.path == "" {
		return argv[0]
	}
	return d.path
}

// runs reports whether a program answers as a decoder does.
func runs(path string, argv []string) bool {
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return false
	}
	defer nothing.Close()
	r := Reader{cfg: DefaultConfig()}
	_, err = r.isolation(context.Background(), nothing, func() (*process, error) { return startProgram(path, argv) })
	return err == nil
}
