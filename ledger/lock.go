package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrLocked says that another process has the ledger open.
var ErrLocked = errors.New("ledger is in use")

// lock is a file that one process at a time holds. The kernel lets go of it
// when the process ends, however it ends; the file itself stays, for removing
// it would let two processes hold locks on two files of the same name.
type lock struct{ file *os.File }

// orphanPatience is how long the lock of a process that has ended is waited for:
// a child that it was about to start when it was killed holds a copy until it
// runs its own program, which is milliseconds, and on a loaded machine more.
const orphanPatience, orphanPause = 2 * time.Second, 10 * time.Millisecond

// takeLock takes the lock at path and writes this process into it.
func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(orphanPatience); ; time.Sleep(orphanPause) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		name, ended := holder(f)
		if ended && time.Now().Before(until) {
			continue
		}
		err = fmt.Errorf("%w by %s; wait until it is done, or stop it", ErrLocked, name)
		break
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

// holder names the process that has the lock, as it wrote itself, and reports
// whether that process has ended.
func holder(f *os.File) (name string, ended bool) {
	const pidBytes = 32 // more than any process number has
	text, err := io.ReadAll(io.NewSectionReader(f, 0, pidBytes))
	pid, parseErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || parseErr != nil {
		return "a process that has not said which", false
	}
	return fmt.Sprintf("process %d", pid), errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func replace(f *os.File, text string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(text), 0)
	return err
}
