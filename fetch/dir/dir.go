// Package dir is the archive that is a folder: a mirror, a mount, or the place
// where someone else's program leaves its files.
//
// The folder is listed recursively. Files that their writers mark as
// unfinished are not listed, nothing outside the folder is ever read, and a
// file that is altered while it is being read is noticed. Whether a listed
// file has come to rest is the watcher's to judge, as for every archive.
//
// Package dir does not write to the folder, and knows nothing of the content of
// files.
package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"lacuna/fetch"
)

// DefaultMaxObjects is the bound that holds where none is given: forty-five
// years of thirty products a day. The heap grows by 76 MiB for 200,000 entries,
// so a full listing takes some 190.
const DefaultMaxObjects = 500_000

// Archive is a folder.
type Archive struct {
	root string
	most int
}

// New returns the archive in the folder root, of which a listing shows at most
// maxObjects entries. It does not touch the disk, and the folder may be made,
// mounted or replaced later.
func New(root string, maxObjects int) *Archive { return &Archive{root: root, most: maxObjects} }

// List returns the finished files below the root. Folders that cannot be read
// make it an error, beside the files of the others.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	root, err := a.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := &walk{root: root, scope: scope, bound: scope.Bound("dir_max_objects", a.most), folders: []string{"."}}
	for len(w.folders) > 0 && err == nil {
		last := len(w.folders) - 1
		name := w.folders[last]
		w.folders = w.folders[:last]
		err = w.folder(ctx, name)
	}
	return w.objects, errors.Join(w.unread.Err(), err)
}

// walk is one listing under way.
type walk struct {
	root    *os.Root
	scope   fetch.Scope
	bound   *fetch.Bound
	folders []string // still to be read
	objects []fetch.Object
	unread  fetch.Unread
}

// batch is the number of entries of a folder that are read at a time: a folder
// may have millions, and all of them at once would have to be kept.
const batch = 1000

// folder reads the entries of one folder. Its error ends the listing.
func (w *walk) folder(ctx context.Context, name string) error {
	unread := func(err error) {
		if name == "." || !errors.Is(err, fs.ErrNotExist) { // a folder that was removed since is no error
			w.unread.Add(err)
		}
	}
	f, err := w.root.Open(name)
	if err != nil {
		unread(err)
		return ctx.Err()
	}
	defer f.Close()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		entries, err := f.ReadDir(batch)
		for _, entry := range entries {
			if err := w.bound.Entry(); err != nil {
				return err
			}
			w.entry(path.Join(name, entry.Name()), entry)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			unread(err)
			return nil
		}
	}
}

// entry adds a file to the listing, or a folder to the queue.
func (w *walk) entry(name string, entry fs.DirEntry) {
	switch {
	case fetch.Unfinished(entry.Name()):
	case entry.IsDir() && strings.HasSuffix(entry.Name(), ".zarr"):
		// Its chunks are no granules, and it may change while they are copied.
		w.unread.Add(fmt.Errorf("%w: %s is a Zarr store; name it as an archive of type zarr, or pack it into one file %s.zip", fetch.ErrUnacceptable, name, name))
	case entry.IsDir():
		if w.scope.Reaches(name) {
			w.folders = append(w.folders, name)
		}
	case w.scope.Holds(name):
		if o, ok := stat(w.root, name, entry); ok {
			w.objects = append(w.objects, o)
		}
	}
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
	// Without O_NONBLOCK, opening a pipe put in the place of a file would block
	// for ever; for files the flag means nothing.
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

// stat returns the object of a regular file. A link counts as the file that it
// points at if that lies below the root; links to folders are not followed, for
// they may form a ring. A file that cannot be examined has vanished since its
// folder was read, or is a link that leads out.
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
