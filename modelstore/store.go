package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Store is a model store in a folder. Any number of processes and goroutines
// may use the same folder at once.
type Store struct {
	dir string
	now func() time.Time
}

// New returns the store in dir; now stamps cards and promotions. It touches
// nothing on disk: a store that is not there yet reads as empty, and the first
// write makes it.
func New(dir string, now func() time.Time) *Store {
	return &Store{dir: dir, now: now}
}

// Dir returns the folder of the store.
func (s *Store) Dir() string { return s.dir }

// Write adds a version with the given card and files, and returns it. The
// store fills in the card's schema, files and, where it is zero, creation time.
// When Write returns, the version is on disk for good; when it does not, there
// is no trace of it that GC would not remove. Writing the same content again
// changes nothing.
func (s *Store) Write(ctx context.Context, card Card, files map[string]io.Reader) (*Version, error) {
	staged, err := s.stage(ctx)
	if err != nil {
		return nil, fmt.Errorf("write model version: %w", err)
	}
	defer staged.discard()
	card.Schema, card.Files = CardSchema, nil
	if card.Created.IsZero() {
		card.Created = s.now().UTC().Truncate(time.Second)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := staged.add(ctx, name, files[name])
		if err != nil {
			return nil, fmt.Errorf("write model version: %w", s.explain(err))
		}
		card.Files = append(card.Files, f)
	}
	data, err := card.Encode()
	if err != nil {
		return nil, err
	}
	v, err := s.place(ctx, staged, data)
	if err != nil {
		return nil, fmt.Errorf("write model version: %w", err)
	}
	return v, nil
}

// List returns every version in the store, oldest first, with only the cards
// checked. Versions whose card does not pass are left out and returned as
// *BadVersion errors.
func (s *Store) List() (versions []*Version, bad []error, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "versions"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("list model versions: %w", err)
	}
	for _, e := range entries {
		if !validID(e.Name()) {
			continue // not a version; lost+found is such a folder
		}
		v, err := s.Peek(e.Name())
		switch {
		case errors.Is(err, ErrNotFound): // removed since the folder was read
		case err != nil:
			bad = append(bad, err)
		default:
			versions = append(versions, v)
		}
	}
	slices.SortStableFunc(versions, func(a, b *Version) int { return a.Card.Created.Compare(b.Card.Created) })
	return versions, bad, nil
}

func (s *Store) versionDir(id string) string { return filepath.Join(s.dir, "versions", id) }

// staging is a version being written. Its folder is locked as long as the
// writer lives, so that GC can tell it from leftovers.
type staging struct {
	dir    string
	handle *os.File
	total  int64
}

// stage makes a folder for a version to be written in.
func (s *Store) stage(ctx context.Context) (*staging, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir, err := os.MkdirTemp(filepath.Join(s.dir, "incoming"), "v-*")
	if err != nil {
		return nil, s.explain(err)
	}
	handle, err := lockFolder(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	if err := handle.Chmod(folderMode); err != nil { // temporary folders are private, versions are not
		return nil, errors.Join(err, handle.Close(), os.Remove(dir))
	}
	return &staging{dir: dir, handle: handle}, nil
}

// discard removes a version that was not placed.
func (st *staging) discard() {
	// GC removes the rest where this fails.
	_ = os.RemoveAll(st.dir)
	st.handle.Close()
}

// add writes one file, to the disk and not just to its cache.
func (st *staging) add(ctx context.Context, name string, r io.Reader) (File, error) {
	if !fileName(name) {
		return File{}, fmt.Errorf("file %q: not a name for a file of a version", name)
	}
	hash := sha256.New()
	limited := io.LimitReader(until(ctx, r), maxVersionBytes-st.total+1)
	n, err := writeSynced(filepath.Join(st.dir, name), io.TeeReader(limited, hash))
	if err != nil {
		return File{}, fmt.Errorf("file %s: %w", name, err)
	}
	if st.total += n; st.total > maxVersionBytes {
		return File{}, fmt.Errorf("file %s: the version has more than %d bytes", name, int64(maxVersionBytes))
	}
	return File{Name: name, Bytes: n, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}

// until returns r for as long as ctx lasts, so that it ends a long copy.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
