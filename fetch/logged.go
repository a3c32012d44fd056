package fetch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"
)

// Logged writes a line of level debug for each call of an archive. News for the
// operator comes from the caller of the archive.
type Logged struct {
	archive Archive
	log     *slog.Logger
}

// NewLogged returns archive with a log.
func NewLogged(archive Archive, log *slog.Logger) *Logged {
	return &Logged{archive: archive, log: log}
}

// List lists the archive.
func (l *Logged) List(ctx context.Context, scope Scope) ([]Object, error) {
	start := time.Now()
	objects, err := l.archive.List(ctx, scope)
	l.log.Debug("archive listed", "prefixes", len(scope.Prefixes), "objects", len(objects),
		"duration_ms", time.Since(start).Milliseconds(), "err", err)
	return objects, err
}

// Open opens o. The line comes when the reader is closed.
func (l *Logged) Open(ctx context.Context, o Object, offset int64) (io.ReadCloser, error) {
	start := time.Now()
	src, err := l.archive.Open(ctx, o, offset)
	if err != nil {
		l.log.Debug("object not opened", "object", o.Name, "offset_bytes", offset,
			"duration_ms", time.Since(start).Milliseconds(), "err", err)
		return nil, err
	}
	return &loggedReader{ReadCloser: src, object: o.Name, offset: offset, start: start, log: l.log}, nil
}

type loggedReader struct {
	io.ReadCloser
	object string
	offset int64
	start  time.Time
	log    *slog.Logger
	bytes  int64
	err    error // the error that ended reading, if not io.EOF
}

// Read reads on and counts.
func (r *loggedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.bytes += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// Close closes the reader and writes the line.
func (r *loggedReader) Close() error {
	err := r.ReadCloser.Close()
	r.log.Debug("object read", "object", r.object, "offset_bytes", r.offset, "bytes", r.bytes,
		"duration_ms", time.Since(r.start).Milliseconds(), "err", r.err)
	return err
}
