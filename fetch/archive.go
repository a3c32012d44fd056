package fetch

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// ErrPermanent marks a failure of the archive as a whole that trying again will
// not cure, such as refused credentials. A Watcher reports it once and asks
// again a day later.
var ErrPermanent = errors.New("permanent failure")

// ErrChanged says that an object is no longer the one that was listed. The next
// listing shows its new state.
var ErrChanged = errors.New("object changed since it was listed")

// ErrUnacceptable says that an archive answered, but with something that is
// not accepted: a redirect that gives up encryption, a host that the settings
// do not allow, a listing beyond its bound. To ask again at once would bring
// the same.
var ErrUnacceptable = errors.New("not accepted")

// Object is a file on an archive as a listing shows it.
type Object struct {
	Name    string    // slash-separated path below the root of the archive
	Size    int64     // bytes
	ModTime time.Time // modification time by the archive's clock; zero: not given
	ETag    string    // version tag, opaque; empty where the archive has none
	MD5     string    // hash of the bytes, lower-case hex; empty: not given
	Digest  string    // SHA-256 of the bytes, lower-case hex; empty where the archive does not give it
}

// Scope is the part of an archive that a listing is to show. The zero Scope is
// all of it.
type Scope struct {
	// Prefixes are the allowed beginnings of names; none allows every name. A
	// listing shows no other names.
	Prefixes []string
	// Since allows an archive to leave out objects last modified before it, and
	// those of earlier days. An archive that would gain nothing by that shows
	// them too.
	Since time.Time
	// Progress is called for every entry that was read, so that a long listing
	// can be told from a stalled one. It may be nil, and may be called from
	// several goroutines at a time.
	Progress func()
}

func (s Scope) progress() func() {
	if s.Progress == nil {
		return func() {}
	}
	return s.Progress
}

// Holds reports whether an object of this name belongs into a listing of s.
func (s Scope) Holds(name string) bool {
	if len(s.Prefixes) == 0 {
		return true
	}
	for _, prefix := range s.Prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Archive is a place where granules appear. Objects may appear, be replaced and
// vanish at any time, also between two calls and while a reader is open. An
// Archive is safe for concurrent use, and package archivetest checks these
// promises.
type Archive interface {
	// List returns the objects of scope that are there now, each name once, in
	// any order. Names that mark unfinished files are left out (see
	// Unfinished); names that are merely odd are not, so that they can be
	// reported.
	//
	// An error does not void the objects that come with it: they are there,
	// but the list is not complete. An empty archive is no error, nor is a
	// prefix under which nothing lies; a root that cannot be reached is one, so
	// that an outage is never taken for emptiness. An error that wraps
	// ErrPermanent is not cured by asking again soon. A listing is bounded in
	// entries and bytes while it is read, and beyond that fails with
	// ErrUnacceptable.
	List(ctx context.Context, scope Scope) ([]Object, error)

	// Open returns the bytes of o, an object from List, from offset on, which
	// is 0 for all of it and at most its size. Where the object is gone the
	// error wraps fs.ErrNotExist. Where it is no longer the listed one, Open or
	// Read fails with ErrChanged; an archive that cannot tell delivers the new
	// bytes, and the length, the hash or the next listing shows it. A reader
	// that ends in io.EOF has delivered the rest of the object; an object that
	// ends early ends in io.ErrUnexpectedEOF, so that it can be resumed.
	//
	// A reader that is Digested knows a hash of the object that the listing
	// did not show. Cancelling ctx makes a blocked Read return. The caller
	// closes the reader.
	Open(ctx context.Context, o Object, offset int64) (io.ReadCloser, error)
}
