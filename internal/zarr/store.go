package zarr

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Store gives the bytes of a store by key, a slash-separated path such as
// chl/c/0/1. It is safe for concurrent use.
type Store interface {
	// Get returns the bytes of a key, at most most of them: more is an error.
	// Where there is no such key the error wraps fs.ErrNotExist.
	Get(ctx context.Context, key string, most int64) ([]byte, error)
}

// Files is a store whose keys are paths: in a folder by OpenFolder, or in a ZIP
// file by OpenZip.
type Files struct {
	open  func(key string) (io.ReadCloser, error)
	nodes func(at string) ([]string, error)
	close func() error
}

// OpenFolder returns the store in a folder. Links do not lead out of it.
func OpenFolder(dir string) (*Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	nodes := func(at string) ([]string, error) {
		entries, err := fs.ReadDir(root.FS(), path.Join(".", at))
		if err != nil {
			return nil, err
		}
		var names []string
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return names, nil
	}
	open := func(key string) (io.ReadCloser, error) {
		if info, err := root.Stat(key); err != nil {
			return nil, err
		} else if !info.Mode().IsRegular() { // to open a pipe would block
			return nil, fmt.Errorf("%s: %w: not a regular file", key, fs.ErrNotExist)
		}
		return root.Open(key)
	}
	return &Files{open: open, nodes: nodes, close: root.Close}, nil
}

// OpenZip returns the store in a ZIP file, whose root may be a folder in it. Of
// two entries of one name the later one counts: writers replace documents so.
func OpenZip(src io.ReaderAt, size int64) (*Files, error) {
	z, err := zip.NewReader(src, size)
	if err != nil {
		return nil, fmt.Errorf("open ZIP: %w", err)
	}
	root, depth := "", -1
	entries := map[string]*zip.File{}
	for _, f := range z.File {
		if !fs.ValidPath(strings.TrimSuffix(f.Name, "/")) {
			return nil, fmt.Errorf("the ZIP file has the path %q, which leads out of it", f.Name)
		}
		entries[f.Name] = f
		name := path.Base(f.Name)
		if name != metaV3 && name != groupV2 && name != arrayV2Name {
			continue
		}
		if d := strings.Count(f.Name, "/"); depth < 0 || d < depth {
			root, depth = path.Dir(f.Name), d
		}
	}
	if depth < 0 {
		return nil, errors.New("the ZIP file holds no Zarr store: it has neither zarr.json nor .zgroup")
	}
	open := func(key string) (io.ReadCloser, error) {
		f, ok := entries[path.Join(root, key)]
		if !ok {
			return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
		}
		return f.Open()
	}
	nodes := func(at string) ([]string, error) {
		found := map[string]bool{}
		for name := range entries {
			if below, ok := strings.CutPrefix(name, strings.TrimPrefix(path.Join(root, at)+"/", "./")); ok {
				if node, _, deeper := strings.Cut(below, "/"); deeper {
					found[node] = true
				}
			}
		}
		return slices.Sorted(maps.Keys(found)), nil
	}
	return &Files{open: open, nodes: nodes, close: func() error { return nil }}, nil
}

// Close gives the store back.
func (s *Files) Close() error { return s.close() }

// Nodes returns the names of the arrays and groups at a path, where no
// consolidated metadata name them.
func (s *Files) Nodes(at string) ([]string, error) {
	names, err := s.nodes(at)
	return names[:min(len(names), maxNodes)], err
}

// Get returns the bytes of a key.
func (s *Files) Get(ctx context.Context, key string, most int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !fs.ValidPath(key) {
		return nil, fmt.Errorf("key %q leads out of the store", key)
	}
	f, err := s.open(key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAtMost(f, key, most)
}

// ReadAtMost reads all of r, of which more than most bytes are an error.
func ReadAtMost(r io.Reader, key string, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s: it has more than %d bytes", key, most)
	}
	return b, nil
}

// IsStore reports whether a folder is a Zarr store.
func IsStore(dir string) bool {
	for _, name := range []string{metaV3, groupV2} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Pack writes the store in a folder as a ZIP file whose bytes depend on its
// content alone. More than most bytes are an error.
func Pack(ctx context.Context, dir string, w io.Writer, most int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	z := zip.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !d.Type().IsRegular() { // folders, and links, which may lead anywhere
			return nil
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		to, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return err
		}
		n, err := io.Copy(to, io.LimitReader(f, most+1))
		if most -= n; err == nil && most < 0 {
			err = ErrTooLarge
		}
		return err
	})
	if err != nil {
		return err
	}
	return z.Close()
}

// ErrTooLarge says that a store has more bytes than are allowed.
var ErrTooLarge = errors.New("the store is too large")
