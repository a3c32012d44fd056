package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ErrLocked says that another process has the ledger open.
var ErrLocked = errors.New("ledger is in use")

// lock is a file that one process at a time holds. The kernel lets go of it
// when the process ends, however it ends; the file itself stays, for removing
// it would let two processes hold locks on two files of the same name.
type lock struct{ file *os.File }

// takeLock takes the lock at path and writes this process into it.
func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w by %s; wait until it is done, or stop it", ErrLocked, holder(f))
	}
	if err == nil {
		err = replace(f, strconv.Itoa(os.Getpid())+"\n")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &lock{file: f}, nil
}

// release lets another process have the lock. A ledger that was joined has none.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// holder names the process that has the lock, as it wrote itself.
func holder(f *os.File) string {
	const pidBytes = 32 // more than any process number has
	text, err := io.ReadAll(io.LimitReader(f, pidBytes))
	pid, parseErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || parseErr != nil {
		return "a process that has not said which"
	}
	return fmt.Sprintf("process %d", pid)
}

func replace(f *os.File, text string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(text), 0)
	return err
}
