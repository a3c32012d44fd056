package push

import (
	"context"
	"errors"
	"io"
	"time"

	"lacuna/internal/session"
)

// server is a session with a server of files. Names are paths with slashes. One
// goroutine uses it at a time.
type server interface {
	session.Session
	// Bind makes the end of ctx interrupt the session until the returned function
	// is called.
	Bind(ctx context.Context) (unbind func())
	// size returns the bytes of a file, or an error with fs.ErrNotExist.
	size(name string) (int64, error)
	// read returns the bytes of a file from an offset on. It must be read to its end.
	read(name string, offset int64) (io.ReadCloser, error)
	// write writes a file from an offset on, which is at most its size, and returns
	// the offset that it has begun at: a server that cannot resume begins at 0.
	write(name string, content io.ReadSeeker, offset int64) (from int64, err error)
	// rename gives a file another name in its folder, and replaces one that has it.
	// Where it is cut in between, that one may have stepped aside.
	rename(from, to string) error
	// remove removes a file that may not be there.
	remove(name string) error
	// makeFolder makes a folder in one that exists, unless it is there.
	makeFolder(name string) error
	// list returns what a folder has; nothing where there is none.
	list(folder string) ([]entry, error)
}

// entry is a file or a folder of a listing.
type entry struct {
	name   string
	folder bool
	time   time.Time // the latest that it can be, but for the clock and the zone of the server
}

// aside is the name of a file while another takes its place, on a server that
// cannot rename over it.
func aside(name string) string { return name + ".old" + partEnding }

// errRefused says that a server keeps bytes to itself that it has.
var errRefused = errors.New("the server does not let it be read")

// samePrefix returns how many bytes from their beginning two readers have in
// common. It reads the first to its end: on an FTP connection the next answer
// comes behind it.
func samePrefix(there, here io.Reader) (same int64, err error) {
	const block = 1 << 20 // SFTP asks for the pieces of a block at once
	a, b := make([]byte, block), make([]byte, block)
	for differs := false; ; {
		n, err := there.Read(a)
		if !differs {
			m, short := io.ReadFull(here, b[:n])
			i := 0
			for i < m && a[i] == b[i] {
				i++
			}
			same += int64(i)
			differs = i < n || short != nil && n > 0
		}
		if errors.Is(err, io.EOF) {
			return same, nil
		}
		if err != nil {
			return same, err
		}
	}
}
