// Package series is the archive over a server that holds one long series and no
// files: every time of the series is an object, a NetCDF file that is made when
// it is opened.
//
// The bytes of an object depend on the numbers and attributes alone, so that a
// map that is read again and has not changed is known again, and its size
// follows from the grid, before it is read. Such servers do not say when a map
// changed: maps of recent days are read again once a day, for as long as a
// Config says, and the bytes decide.
//
// A Source is what differs between servers. Package series knows nothing of
// their protocols.
package series

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/internal/cdf"
	"lacuna/internal/cdl"
)

// Survey is what a source holds now.
type Survey struct {
	// Head describes the file of any one time: the variables and the attributes
	// that all times share, and of numbers those of the coordinates. Its first
	// dimension is time, of length 1.
	Head cdl.File
	// Times are the times of the maps, in any order.
	Times []time.Time
}

// Source is a server. It is safe for concurrent use.
type Source interface {
	// Survey returns what there is. It may leave out times before since.
	Survey(ctx context.Context, since time.Time) (Survey, error)
	// Read returns the file of a time, with its numbers. Where there is no such
	// time the error wraps fs.ErrNotExist, where the grid or the attributes are not
	// the surveyed ones fetch.ErrChanged.
	Read(ctx context.Context, at time.Time) (cdl.File, error)
}

// Config says how the objects of a source are shown.
type Config struct {
	Name       string        // of the objects, before their time
	Reread     time.Duration // maps younger than this are read again once a day
	MaxObjects int           // a listing with more times is cut and is an error
	Now        func() time.Time
}

// Archive shows a source as objects.
type Archive struct {
	cfg    Config
	source Source
}

// New returns the archive of a source.
func New(cfg Config, source Source) *Archive { return &Archive{cfg: cfg, source: source} }

// stamp is the form of a time in a name.
const stamp = "20060102T150405Z"

// List returns an object for every time of the source. A time that the series
// has twice is an object, and an error beside the others.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	bound := scope.Bound("max_objects", a.cfg.MaxObjects)
	s, err := a.source.Survey(ctx, scope.Since)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	size, err := cdf.Size(s.Head)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fetch.ErrUnacceptable, err)
	}
	tag := version(s.Head)
	var objects []fetch.Object
	var unread fetch.Unread
	slices.SortFunc(s.Times, time.Time.Compare)
	for i, at := range s.Times {
		if err := bound.Entry(); err != nil {
			return objects, err
		}
		if i > 0 && at.Equal(s.Times[i-1]) {
			unread.Add(fmt.Errorf("%w: the series has %s twice, and one map of it is used: tell the provider", fetch.ErrUnacceptable, at.UTC().Format(time.RFC3339)))
			continue
		}
		if name := a.name(at); scope.Holds(name) {
			objects = append(objects, fetch.Object{Name: name, Size: size, ETag: a.tag(tag, at)})
		}
	}
	return objects, unread.Err()
}

// name returns the name of the object of a time.
func (a *Archive) name(at time.Time) string {
	at = at.UTC()
	return at.Format("2006/01/") + a.cfg.Name + "_" + at.Format(stamp) + ".nc"
}

// tag is the version of the object of a time, as far as it can be told: that of
// the head, and for recent days the date of today.
func (a *Archive) tag(head string, at time.Time) string {
	now := a.cfg.Now().UTC()
	if now.Sub(at) < a.cfg.Reread {
		return head + now.Format("-20060102")
	}
	return head
}

// version is a hash of a head: its grid, types and attributes.
func version(head cdl.File) string {
	head.Vars = slices.Clone(head.Vars)
	for i, v := range head.Vars {
		if coordinate := len(v.Dims) == 1 && v.Dims[0] != head.Dims[0].Name; !coordinate {
			head.Vars[i].Raw = nil
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", head))
	const enough = 8 // bytes; it is compared with the last one alone
	return hex.EncodeToString(sum[:enough])
}

// Open returns the bytes of o from offset on. They are made anew, and Digest is
// that of the whole, so that a map which changed since the first bytes of a
// broken download is found out.
func (a *Archive) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	at, err := a.timeOf(o.Name)
	if err != nil {
		return nil, err
	}
	file, err := a.source.Read(ctx, at)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Name, err)
	}
	if tag, _, _ := strings.Cut(o.ETag, "-"); tag != "" && tag != version(file) {
		return nil, fmt.Errorf("open %s: %w: its grid or its attributes are others", o.Name, fetch.ErrChanged)
	}
	content, err := cdf.Encode(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open %s: %w: %w", o.Name, fetch.ErrUnacceptable, err)
	case offset < 0 || offset > int64(len(content)) || int64(len(content)) != o.Size:
		return nil, fmt.Errorf("open %s: %w: it has %d bytes, listed were %d", o.Name, fetch.ErrChanged, len(content), o.Size)
	}
	sum := sha256.Sum256(content)
	return &reader{Reader: bytes.NewReader(content[offset:]), ctx: ctx, digest: hex.EncodeToString(sum[:])}, nil
}

// timeOf returns the time in the name of an object.
func (a *Archive) timeOf(name string) (time.Time, error) {
	text := strings.TrimSuffix(name[strings.LastIndex(name, "_")+1:], ".nc")
	at, err := time.Parse(stamp, text)
	if err != nil || a.name(at) != name {
		return time.Time{}, fmt.Errorf("open %q: no object of this series: %w", name, fs.ErrNotExist)
	}
	return at, nil
}

// reader delivers a made object.
type reader struct {
	io.Reader
	ctx    context.Context // that of Open: its cancellation ends Read by contract
	digest string
}

// Read delivers the next bytes.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Digest returns the SHA-256 of the whole object.
func (r *reader) Digest() string { return r.digest }

// Close ends the reader.
func (r *reader) Close() error { return nil }
