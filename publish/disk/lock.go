package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"lacuna/internal/durable"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another daemon, in this process or another, works on the
// folder of products.
var ErrLocked = errors.New("the folder of products is in use by another lacuna")

// Hold keeps every other daemon out of a folder of products, from Lock on. A folder
// that could not be locked then, because its disk failed, is locked before it is used,
// and so is another one that has come in its place, as when a disk is mounted. Nil
// keeps nobody out.
type Hold struct {
	mu     sync.Mutex // guards the rest
	wanted bool
	folder *os.File // the folder that is locked; nil: none is
}

// Lock keeps every other daemon out of the folder until unlock is called, or
// this process ends. It locks the folder itself, which needs no right to write
// there. Where it fails for another reason than ErrLocked, a Store with a Hold tries
// again before the folder is used, until unlock is called.
func (s Store) Lock() (unlock func() error, err error) {
	hold := s.Hold
	if hold == nil {
		hold = new(Hold)
	}
	hold.mu.Lock()
	hold.wanted = true
	hold.mu.Unlock()
	if err = durable.MakeFolders(s.Root); err == nil {
		err = hold.keep(s.Root)
	}
	if err != nil {
		err = fmt.Errorf("lock %s: %w", s.Root, err)
	}
	if errors.Is(err, ErrLocked) || err != nil && s.Hold == nil {
		return nil, errors.Join(err, hold.release())
	}
	return hold.release, err
}

// keep locks a folder, where that is wanted and it is not locked yet.
func (h *Hold) keep(root string) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.wanted || h.holds(root) {
		return nil
	}
	d, err := os.Open(root)
	if err != nil {
		return err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w; stop that one, or give this one a products_dir of its own", ErrLocked)
	}
	if err != nil {
		return errors.Join(err, d.Close())
	}
	if h.folder != nil {
		_ = h.folder.Close() // of a folder that is not there any more
	}
	h.folder = d
	return nil
}

// holds reports whether the folder that is locked is the one at a path.
func (h *Hold) holds(root string) bool {
	if h.folder == nil {
		return false
	}
	locked, err := h.folder.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(root)
	return err == nil && os.SameFile(locked, there)
}

// release gives the lock up.
func (h *Hold) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = false
	if h.folder == nil {
		return nil
	}
	folder := h.folder
	h.folder = nil
	return folder.Close()
}
