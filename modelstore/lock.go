package modelstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is the pause between two attempts to take the lock. A change under
// the lock takes a few synced writes, about this long.
const lockPoll = 5 * time.Millisecond

// lock waits until no other process or goroutine changes the store, and makes
// its folders. The kernel gives the lock back when a process ends, however it
// ends; the file stays, for removing it would let two processes hold locks on
// two files of the same name.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := s.makeFolders(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, s.explain(err)
	}
	for {
		err := flock(file)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock model store %s: %w", s.dir, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another process that changes model store %s: %w", s.dir, context.Cause(ctx)), file.Close())
		case <-time.After(lockPoll):
		}
	}
}

// lockFolder locks a folder that is free. Closing the handle unlocks it.
func lockFolder(dir string) (*os.File, error) {
	handle, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := flock(handle); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), handle.Close())
	}
	return handle, nil
}

// flock takes the lock of an open file or says EWOULDBLOCK.
func flock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
