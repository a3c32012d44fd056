// Package dir is the archive that is a folder: a mirror, a mount, or the place
// where someone else's program leaves its files.
//
// The folder is listed recursively. Files that their writers mark as
// unfinished are not listed, nothing outside the folder is ever read, and a
// file that is altered while it is being read is noticed. Whether a listed
// file has come to rest is the watcher's to judge, as for every archive.
//
// Package dir does not write to the folder, and knows nothing of what the
// files hold.
package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"lacuna/fetch"
)

// Archive is a folder.
type Archive struct{ root string }

// New returns the archive in the folder root. It does not touch the disk, and
// the folder may be made, mounted or replaced later.
func New(root string) *Archive { return &Archive{root: root} }

// List returns the finished files below the root. Folders that cannot be read
// make it an error, beside what the others hold.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	root, err := a.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var objects []fetch.Object
	var unread []error
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && (name == "." || !errors.Is(err, fs.ErrNotExist)) {
			unread = append(unread, err)
		}
		if err != nil || name == "." {
			return nil // WalkDir passes over what it could not read
		}
		if fetch.Unfinished(entry.Name()) || entry.IsDir() && !scope.Reaches(name) {
			return skip(entry)
		}
		if o, ok := stat(root, name, entry); ok && scope.Holds(name) {
			objects = append(objects, o)
		}
		return nil
	})
	return objects, errors.Join(append(unread, err)...)
}

// Open returns the bytes of o from offset on.
func (a *Archive) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := a.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Without O_NONBLOCK, a pipe put in the place of a file would hold us for
	// ever; for files it means nothing.
	f, err := root.OpenFile(o.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	r := &reader{file: f, listed: o}
	if err := r.check(); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (a *Archive) open() (*os.Root, error) {
	root, err := os.OpenRoot(a.root)
	if err != nil {
		return nil, fmt.Errorf("%w; create the folder, mount it or correct its path", err)
	}
	return root, nil
}

// skip passes over an entry and, if it is a folder, all that is in it.
func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// stat returns the object of a regular file. A link counts as the file that
// it points at if that lies below the root; links to folders are not followed,
// for they may form a ring. A file that cannot be looked at has vanished since
// its folder was read, or is a link that leads out.
func stat(root *os.Root, name string, entry fs.DirEntry) (fetch.Object, bool) {
	if !entry.Type().IsRegular() && entry.Type() != fs.ModeSymlink {
		return fetch.Object{}, false
	}
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return fetch.Object{}, false
	}
	return fetch.Object{Name: name, Size: info.Size(), ModTime: info.ModTime()}, true
}

// reader reads a file that somebody may be writing to.
type reader struct {
	file   *os.File
	listed fetch.Object
}

// Read ends in io.EOF only if the file is still the one that was listed: a
// file rewritten in place has the right length and the wrong bytes.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	if err == io.EOF {
		if changed := r.check(); changed != nil {
			return n, changed
		}
	}
	return n, err
}

// Close closes the file.
func (r *reader) Close() error { return r.file.Close() }

func (r *reader) check() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != r.listed.Size || !info.ModTime().Equal(r.listed.ModTime) {
		return fetch.ErrChanged
	}
	return nil
}
