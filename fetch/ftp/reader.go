package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/textproto"
	"time"

	"github.com/jlaffaye/ftp"

	"lacuna/fetch"
	"lacuna/internal/session"
)

// Open returns the bytes of o from offset on.
func (a *Archive) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	s, err := a.pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{ctx: ctx, archive: a, session: s, object: o, rest: o.Size - offset, unbind: s.Bind(ctx)}
	if err := r.start(offset); err != nil {
		r.release(false)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("retrieve %s: %w", o.Name, err)
	}
	return r, nil
}

// reader reads a file that somebody may be writing to.
type reader struct {
	ctx     context.Context // context of Open: its cancellation ends Read by contract
	archive *Archive
	session *session.FTP
	object  fetch.Object
	unbind  func()
	data    *ftp.Response // nil: nothing is left to read
	skip    int64         // bytes to drop first, from a server that cannot resume
	rest    int64         // bytes to come
	version time.Time     // time by MDTM when reading began
	done    error         // how reading ended
}

// start checks that the file is the listed one and begins the transfer.
func (r *reader) start(offset int64) error {
	if err := r.archive.politeness.Pacer.Wait(r.ctx, r.archive.host); err != nil {
		return err
	}
	version, err := r.check()
	if err != nil {
		return err
	}
	r.version = version
	if r.rest == 0 && offset > 0 {
		return nil
	}
	name := r.archive.at(r.object.Name)
	r.data, err = r.session.Conn.RetrFrom(name, uint64(offset))
	if offset > 0 && unsupported(err) {
		r.skip = offset
		r.data, err = r.session.Conn.Retr(name)
	}
	return absent(session.NoEOF(err))
}

// check compares the file with the listed one and returns its time. A server
// without SIZE or MDTM cannot be asked.
func (r *reader) check() (time.Time, error) {
	name := r.archive.at(r.object.Name)
	size, err := r.session.Conn.FileSize(name)
	switch {
	case err != nil && !unsupported(err):
		return time.Time{}, absent(session.NoEOF(err))
	case err == nil && size != r.object.Size:
		return time.Time{}, fmt.Errorf("%w: it has %d bytes, listed were %d", fetch.ErrChanged, size, r.object.Size)
	}
	if !r.session.Conn.IsGetTimeSupported() {
		return time.Time{}, nil
	}
	modified, err := r.session.Conn.GetTime(name)
	switch {
	case unsupported(err):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, absent(session.NoEOF(err))
	case r.session.Conn.IsTimePreciseInList() && !modified.Truncate(time.Second).Equal(r.object.ModTime.Truncate(time.Second)):
		return time.Time{}, fmt.Errorf("%w: it was modified at %v, listed was %v", fetch.ErrChanged, modified, r.object.ModTime)
	}
	return modified, nil
}

// unsupported reports whether a server does not know the command.
func unsupported(err error) bool {
	var told *textproto.Error
	if !errors.As(err, &told) {
		return false
	}
	switch told.Code {
	case ftp.StatusBadCommand, ftp.StatusBadArguments, ftp.StatusNotImplemented,
		ftp.StatusNotImplementedParameter, ftp.StatusBadSequence:
		return true
	}
	return false
}

// absent adds fs.ErrNotExist to the answer for a missing file, which servers
// also give for a file they may not show.
func absent(err error) error {
	var told *textproto.Error
	if errors.As(err, &told) && told.Code == ftp.StatusFileUnavailable {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// Read delivers the next bytes. It ends in io.EOF only if all have come and the
// file has not changed meanwhile.
func (r *reader) Read(p []byte) (int, error) {
	if r.done != nil {
		return 0, r.done
	}
	n, err := r.read(p)
	if err != nil {
		r.done = err
		if r.ctx.Err() != nil {
			r.done = r.ctx.Err()
		}
		r.release(errors.Is(err, io.EOF) || errors.Is(err, fetch.ErrChanged) && r.data == nil)
	}
	return n, r.done
}

func (r *reader) read(p []byte) (int, error) {
	if r.data == nil {
		return 0, io.EOF
	}
	if r.skip > 0 {
		n, err := io.CopyN(io.Discard, r.data, r.skip)
		r.skip -= n
		if err != nil {
			return 0, session.NoEOF(err)
		}
	}
	n, err := r.data.Read(p)
	if int64(n) > r.rest {
		return 0, fmt.Errorf("%w: it has more bytes than listed", fetch.ErrChanged)
	}
	r.rest -= int64(n)
	if errors.Is(err, io.EOF) {
		return n, r.finish()
	}
	return n, err
}

// finish ends a transfer after its last byte: the server must confirm that it
// was the last, and the file must not have changed.
func (r *reader) finish() error {
	err := r.data.Close()
	r.data = nil
	if err != nil {
		return fmt.Errorf("end transfer: %w", session.NoEOF(err))
	}
	version, err := r.check()
	switch {
	case err != nil:
		return err
	case !version.Equal(r.version):
		return fmt.Errorf("%w: it was modified while it was read", fetch.ErrChanged)
	case r.rest > 0:
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

// Close ends the transfer. A connection on which one is under way is given up,
// for the rest of the file would come first.
func (r *reader) Close() error {
	r.release(r.data == nil)
	if r.done == nil {
		r.done = fs.ErrClosed
	}
	return nil
}

// release gives the session back, once.
func (r *reader) release(whole bool) {
	if r.unbind == nil {
		return
	}
	r.unbind()
	r.unbind = nil
	r.archive.pool.Put(r.session, whole && r.ctx.Err() == nil)
}
