package publish

import (
	"maps"
	"os"
	"sync"
	"syscall"
	"time"
)

// Hashed knows the sha256 of files that this process has hashed a moment ago, so that
// not every sink of a product reads it, and its members, once more to learn that they
// are what was made. A file that was written to since has another time of change, and
// is hashed again. Its methods may be called from many goroutines; nil knows none.
type Hashed struct {
	mu    sync.Mutex
	files map[inode]hashedFile
	now   func() time.Time // nil: time.Now
}

// inode is a file under whatever name.
type inode struct{ device, number uint64 }

// hashedFile is a file as it was when it was hashed.
type hashedFile struct {
	sum     string
	size    int64
	changed time.Time
	at      time.Time
}

const (
	// hashedFor is how long a hash is believed: sinks that work get a product within
	// seconds, and what lay on a disk for longer is worth another look.
	hashedFor = 10 * time.Minute
	// hashedMost is the number of files beyond which those are forgotten that are not
	// believed any more: a backfill makes one or two a second.
	hashedMost = 1024
)

// Note keeps the hash of a file that nobody else changes now. One that cannot be looked
// at is not kept.
func (h *Hashed) Note(path, sum string) {
	if h == nil {
		return
	}
	info, err := os.Stat(path)
	if err == nil {
		h.note(info, sum)
	}
}

// note keeps the hash of a file as info, from before it was hashed, shows it.
func (h *Hashed) note(info os.FileInfo, sum string) {
	id, ok := inodeOf(info)
	if h == nil || !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.time()
	if h.files == nil {
		h.files = map[inode]hashedFile{}
	}
	if len(h.files) >= hashedMost {
		maps.DeleteFunc(h.files, func(_ inode, f hashedFile) bool { return now.Sub(f.at) > hashedFor })
	}
	if len(h.files) >= hashedMost {
		clear(h.files)
	}
	h.files[id] = hashedFile{sum: sum, size: info.Size(), changed: info.ModTime(), at: now}
}

// Has reports whether an open file is known to have a hash.
func (h *Hashed) Has(f *os.File, sum string) bool {
	if h == nil {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	id, ok := inodeOf(info)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.files[id]
	return ok && known.sum == sum && known.size == info.Size() && known.changed.Equal(info.ModTime()) && h.time().Sub(known.at) <= hashedFor
}

func (h *Hashed) time() time.Time {
	if h.now != nil {
		return h.now()
	}
	return time.Now()
}

func inodeOf(info os.FileInfo) (inode, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, false
	}
	return inode{device: s.Dev, number: s.Ino}, true
}
