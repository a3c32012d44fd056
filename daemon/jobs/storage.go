package jobs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lacuna/internal/durable"
)

// Storage keeps content by keys, whose parts are separated by slashes. Several
// machines use it at a time. What appears under a key appears whole or not at all.
type Storage interface {
	// Open returns the content of a key; the error is fs.ErrNotExist where there is none.
	Open(key string) (io.ReadCloser, error)
	// Put stores content of a size, in place of what is there.
	Put(key string, content io.Reader, size int64) error
	// Create stores content unless there is some already, which it reports.
	Create(key string, content []byte) (created bool, err error)
	// Touch marks a key as used now, and reports whether it is there.
	Touch(key string) (bool, error)
	// Remove removes a key that may not be there.
	Remove(key string) error
	// List calls each with the keys below a folder, and when they were last used.
	List(folder string, each func(key string, used time.Time) error) error
}

// Dir is a folder of a file system that all machines have mounted. It is a Storage.
type Dir string

func (d Dir) path(key string) string { return filepath.Join(string(d), filepath.FromSlash(key)) }

// Open implements Storage.
func (d Dir) Open(key string) (io.ReadCloser, error) { return os.Open(d.path(key)) }

// Put implements Storage.
func (d Dir) Put(key string, content io.Reader, _ int64) error {
	_, err := d.write(key, content, (*durable.File).CloseAtomicallyReplace)
	return err
}

// Create implements Storage. A link fails where the name is taken, also between two
// machines.
func (d Dir) Create(key string, content []byte) (bool, error) {
	return d.write(key, bytes.NewReader(content), func(f *durable.File) error {
		if err := f.Sync(); err != nil {
			return err
		}
		return os.Link(f.Name(), d.path(key))
	})
}

func (d Dir) write(key string, content io.Reader, show func(*durable.File) error) (shown bool, err error) {
	target := d.path(key)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return false, err
	}
	out, err := durable.Pending(target, 0o644)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Cleanup()) }()
	if _, err := io.Copy(out, content); err != nil {
		return false, err
	}
	err = show(out)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// Touch implements Storage.
func (d Dir) Touch(key string) (bool, error) {
	now := time.Now()
	err := os.Chtimes(d.path(key), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Remove implements Storage.
func (d Dir) Remove(key string) error {
	if err := os.Remove(d.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List implements Storage.
func (d Dir) List(folder string, each func(key string, used time.Time) error) error {
	return filepath.WalkDir(d.path(folder), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(string(d), path)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(rel), info.ModTime())
	})
}
