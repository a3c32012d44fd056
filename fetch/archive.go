package fetch

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrPermanent marks a failure of the archive as a whole that trying again
// will not cure, such as refused credentials. A Watcher stops on it.
var ErrPermanent = errors.New("permanent failure")

// ErrChanged says that an object is no longer the one that was listed. The
// next listing shows what it has become.
var ErrChanged = errors.New("object changed since it was listed")

// Object is a file on an archive as a listing shows it.
type Object struct {
	Name    string    // slash-separated path below the root of the archive
	Size    int64     // bytes
	ModTime time.Time // by the clock of the archive
	ETag    string    // version tag, opaque; empty where the archive has none
}

// Archive is a place where granules appear. Objects may appear, be replaced
// and vanish at any time, also between two calls and while a reader is open.
// An Archive is safe for concurrent use, and package archivetest checks what
// is promised here.
type Archive interface {
	// List returns the objects that are there now, each name once, in any
	// order. Names that end in what writers use for unfinished files are left
	// out; names that are merely odd are not, so that they can be reported.
	//
	// An error does not void the objects that come with it: they are there,
	// but the list is not complete. An empty archive is no error; a root that
	// cannot be reached is one, so that an outage is never taken for
	// emptiness. An error that wraps ErrPermanent stops the watcher.
	List(ctx context.Context) ([]Object, error)

	// Open returns the bytes of o, an object from List, from its start. Where
	// the object is gone the error wraps fs.ErrNotExist. Where it is no longer
	// the listed one, Open or Read fails with ErrChanged; an archive that
	// cannot tell delivers what there is, and the length or the next listing
	// shows it. A reader that ends in io.EOF has delivered the whole object.
	//
	// Cancelling ctx makes a blocked Read return. The caller closes the
	// reader.
	Open(ctx context.Context, o Object) (io.ReadCloser, error)
}
