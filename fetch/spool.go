package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// ErrSpool marks a failure of the local disk, as against one of the archive
// or of an object. The next object would meet it too.
var ErrSpool = errors.New("spool folder")

// Granule is a whole object in the spool.
type Granule struct {
	Name    string    // as on the archive
	Path    string    // of the copy in the spool
	SHA256  string    // of its bytes, lower-case hex
	Size    int64     // bytes
	ModTime time.Time // as on the archive
}

// Spool is the folder that granules are copied into. A file in it lies in
// a folder named after its content: it never changes, and a replaced object
// becomes another file. It is safe for concurrent use.
type Spool struct {
	dir        string
	createTemp func(dir string) (tempFile, error)
}

// tempFile is the part of os.File that the spool writes through.
type tempFile interface {
	io.WriteCloser
	Name() string
	Sync() error
}

// NewSpool returns the spool in dir, which is made when it is first needed.
func NewSpool(dir string) *Spool {
	return &Spool{dir: dir, createTemp: func(dir string) (tempFile, error) {
		return os.CreateTemp(dir, tempPrefix+"*")
	}}
}

// tempPrefix begins the names of files that are being written.
const tempPrefix = ".arriving-"

// Bring copies o from archive. When it returns, the file is whole, has the
// listed size and survives a power cut; on any error nothing of it is left.
// A failure of the local disk wraps ErrSpool.
func (s *Spool) Bring(ctx context.Context, archive Archive, o Object) (Granule, error) {
	src, err := archive.Open(ctx, o)
	if err != nil {
		return Granule{}, fmt.Errorf("open %s: %w", o.Name, err)
	}
	defer src.Close()
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return Granule{}, fmt.Errorf("make %w: %w", ErrSpool, err)
	}
	temp, err := s.createTemp(s.dir)
	if err != nil {
		return Granule{}, fmt.Errorf("write to %w: %w", ErrSpool, err)
	}
	defer os.Remove(temp.Name()) // a no-op once it is renamed
	sum, err := fill(ctx, temp, src, o.Size)
	if err != nil {
		return Granule{}, fmt.Errorf("copy %s: %w", o.Name, err)
	}
	g := Granule{Name: o.Name, Path: s.path(o.Name, sum), SHA256: sum, Size: o.Size, ModTime: o.ModTime}
	if err := moveInto(temp.Name(), g.Path); err != nil {
		return Granule{}, fmt.Errorf("move %s into %w: %w", o.Name, ErrSpool, err)
	}
	return g, nil
}

// Sweep removes what a killed process left half written. It must not run
// while another process fills the same spool.
func (s *Spool) Sweep() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep %w: %w", ErrSpool, err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
			errs = append(errs, fmt.Errorf("sweep %w: %w", ErrSpool, err))
		}
	}
	return errors.Join(errs...)
}

// path is where the file with this content lies. It keeps its own name, which
// may be all that says of which day it is, in a folder named after the
// content; the two-digit folder above keeps folders small over years.
func (s *Spool) path(name, sum string) string {
	return filepath.Join(s.dir, sum[:2], sum, path.Base(path.Clean("/"+name)))
}

// fill copies src to dst and closes dst. It checks the size, syncs, and
// returns the hash of what it wrote.
func fill(ctx context.Context, dst tempFile, src io.Reader, size int64) (sum string, err error) {
	defer func() {
		if closeErr := dst.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close in %w: %w", ErrSpool, closeErr)
		}
	}()
	hash := sha256.New()
	// One byte more than listed is enough to see that an object has grown; an
	// archive that never stops sending must not fill the disk.
	n, err := copyUntil(ctx, spoolWriter{dst}, io.TeeReader(io.LimitReader(src, size+1), hash))
	switch {
	case err != nil:
		return "", err
	case n > size:
		return "", fmt.Errorf("longer than the %d bytes listed: %w", size, ErrChanged)
	case n < size:
		return "", fmt.Errorf("ended after %d of %d bytes: %w", n, size, ErrChanged)
	}
	if err := dst.Sync(); err != nil {
		return "", fmt.Errorf("sync %w: %w", ErrSpool, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// copyUntil is io.Copy that stops when ctx is cancelled.
func copyUntil(ctx context.Context, dst io.Writer, src io.Reader) (int64, error) {
	return io.Copy(dst, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return src.Read(p)
	}))
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// spoolWriter tells failures of the disk from failures of the archive, which
// io.Copy does not.
type spoolWriter struct{ file io.Writer }

func (w spoolWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	if err != nil {
		return n, fmt.Errorf("write to %w: %w", ErrSpool, err)
	}
	return n, nil
}

// moveInto renames temp to file and syncs the folders, so that the new name
// survives a power cut.
func moveInto(temp, file string) error {
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o644); err != nil { // CreateTemp's 0600 would keep other users from looking
		return err
	}
	if err := os.Rename(temp, file); err != nil {
		return err
	}
	if err := syncFolder(folder); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(folder))
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
