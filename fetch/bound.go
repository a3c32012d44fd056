package fetch

import (
	"errors"
	"fmt"
	"io"
)

// Bound keeps a listing within limits while it is read, so that an archive
// with ten million entries, or one that never stops sending, costs no more
// memory than one that is full. Entries count whether they are wanted or not.
// One goroutine uses it at a time.
type Bound struct {
	setting string // key of the limit, for the error
	most    int
	entries int
	bytes   int64 // still allowed
	told    func()
}

const (
	// entryBytes is the allowed average size of an entry: the longest key of S3
	// has 1024 bytes, a granule's name with its size and time 300.
	entryBytes = 1 << 10
	// frameBytes is the allowance for the parts of a listing around its
	// entries, such as the head of a page.
	frameBytes = 16 << 20
)

// Bound returns a bound of most entries for a listing of s. Setting is the key
// that an operator raises it with.
func (s Scope) Bound(setting string, most int) *Bound {
	return &Bound{setting: setting, most: most, bytes: int64(most)*entryBytes + frameBytes, told: s.progress()}
}

// Entry counts an entry. It fails with ErrUnacceptable where there are too
// many.
func (b *Bound) Entry() error {
	if b.entries >= b.most {
		return b.Full()
	}
	b.entries++
	b.told()
	return nil
}

// Left returns how many entries may still come.
func (b *Bound) Left() int { return b.most - b.entries }

// Full is the error of a listing with more entries.
func (b *Bound) Full() error {
	return fmt.Errorf("%w: the listing has more than %d entries; narrow the prefixes, or raise %s", ErrUnacceptable, b.most, b.setting)
}

// Reader returns a reader of r that fails with ErrUnacceptable once it has read
// more bytes than the allowed entries can have.
func (b *Bound) Reader(r io.Reader) io.Reader { return &boundReader{src: r, bound: b} }

type boundReader struct {
	src   io.Reader
	bound *Bound
}

// Read reads on and counts.
func (r *boundReader) Read(p []byte) (int, error) {
	b := r.bound
	if b.bytes <= 0 {
		return 0, fmt.Errorf("%w: the listing is longer than %d entries can be; narrow the prefixes, or raise %s", ErrUnacceptable, b.most, b.setting)
	}
	n, err := r.src.Read(p[:min(int64(len(p)), b.bytes)])
	b.bytes -= int64(n)
	return n, err
}

// shownUnread is the number of unreadable folders or lines that an error spells
// out: a screenful.
const shownUnread = 10

// Unread collects the failures of a listing: the first few in full, the others
// as a count, so that a folder full of them makes no error of megabytes.
type Unread struct {
	first []error
	more  int
}

// Add notes a folder or line that could not be read.
func (u *Unread) Add(err error) {
	if len(u.first) < shownUnread {
		u.first = append(u.first, err)
		return
	}
	u.more++
}

// Err returns the failures as one error, or nil.
func (u *Unread) Err() error {
	if u.more == 0 {
		return errors.Join(u.first...)
	}
	return errors.Join(append(u.first, fmt.Errorf("and %d more like these", u.more))...)
}
