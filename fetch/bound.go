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
	setting string // that says how many entries there may be
	most    int
	entries int
	bytes   int64 // that may still come
	told    func()
}

const (
	// entryBytes is what one entry may take on average: the longest key of S3
	// has 1024 bytes, names of granules with all that stands beside them 300.
	entryBytes = 1 << 10
	// frameBytes is what a listing may take beyond its entries: what pages say
	// before and after them.
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
	return fmt.Errorf("%w: the listing has more than %d entries; narrow what is listed, or raise %s", ErrUnacceptable, b.most, b.setting)
}

// Reader returns r, which fails with ErrUnacceptable where too many bytes have
// come for the entries that there may be.
func (b *Bound) Reader(r io.Reader) io.Reader { return &boundReader{src: r, bound: b} }

type boundReader struct {
	src   io.Reader
	bound *Bound
}

// Read reads on and counts.
func (r *boundReader) Read(p []byte) (int, error) {
	b := r.bound
	if b.bytes <= 0 {
		return 0, fmt.Errorf("%w: the listing is longer than that of %d entries can be; narrow what is listed, or raise %s", ErrUnacceptable, b.most, b.setting)
	}
	n, err := r.src.Read(p[:min(int64(len(p)), b.bytes)])
	b.bytes -= int64(n)
	return n, err
}

// shownUnread is how many folders or lines that could not be read an error
// spells out: a screenful.
const shownUnread = 10

// Unread is what could not be read of a listing: the first few in words, the
// others by their number, so that a folder full of them makes no error of
// megabytes.
type Unread struct {
	first []error
	more  int
}

// Add notes what could not be read.
func (u *Unread) Add(err error) {
	if len(u.first) < shownUnread {
		u.first = append(u.first, err)
		return
	}
	u.more++
}

// Err returns all of it; nil where there is nothing.
func (u *Unread) Err() error {
	if u.more == 0 {
		return errors.Join(u.first...)
	}
	return errors.Join(append(u.first, fmt.Errorf("and %d more like these", u.more))...)
}
