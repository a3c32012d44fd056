package modelstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lacuna/internal/durable"
)

const (
	folderMode     = 0o755
	fileMode       = 0o644
	readOnlyFile   = 0o444
	readOnlyFolder = 0o555
)

// place turns a staged folder into the version whose card is data. The rename
// is the moment at which the version exists.
func (s *Store) place(ctx context.Context, st *staging, data []byte) (*Version, error) {
	card, err := DecodeCard(data)
	if err == nil {
		err = card.complete()
	}
	if err != nil {
		return nil, err
	}
	if len(data) > maxCardBytes {
		return nil, fmt.Errorf("card of %d bytes, at most %d", len(data), maxCardBytes)
	}
	if _, err := writeSynced(filepath.Join(st.dir, CardFile), bytes.NewReader(data)); err != nil {
		return nil, s.explain(err)
	}
	if err := syncFolder(st.dir); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	id := versionID(card, data)
	there, err := s.Load(id)
	var bad *BadVersion
	switch {
	case err == nil:
		return there, nil // the same bytes are there already
	case errors.As(err, &bad):
		// A damaged copy makes room for the good one.
		if err := s.toTrash(id); err != nil {
			return nil, err
		}
	}
	dir := s.versionDir(id)
	if err := os.Rename(st.dir, dir); err != nil {
		return nil, s.explain(err)
	}
	if err := syncFolder(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	// Only now: a folder that may not be written cannot be moved.
	if err := os.Chmod(dir, readOnlyFolder); err != nil {
		return nil, err
	}
	return &Version{ID: id, Card: card, dir: dir}, nil
}

// writeSynced copies r into a new read-only file and brings it to the disk.
func writeSynced(path string, r io.Reader) (n int64, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if n, err = io.Copy(file, r); err != nil {
		return n, err
	}
	if err := file.Chmod(readOnlyFile); err != nil {
		return n, err
	}
	return n, file.Sync()
}

// syncFolder brings the names in a folder to the disk. Some network file
// systems cannot sync folders and call the request invalid; they write names at
// once.
func syncFolder(dir string) error {
	if err := durable.Sync(dir); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// makeFolders makes the parts of the store that are not there yet.
func (s *Store) makeFolders() error {
	for _, name := range []string{"versions", "incoming", "trash", "pins", "calendars"} {
		dir := filepath.Join(s.dir, name)
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		if err := os.MkdirAll(dir, folderMode); err != nil {
			return s.explain(err)
		}
		if err := errors.Join(syncFolder(s.dir), syncFolder(filepath.Dir(s.dir))); err != nil {
			return err
		}
	}
	return nil
}

// explain adds the remedy to an error of the file system.
func (s *Store) explain(err error) error {
	hint := ""
	switch {
	case errors.Is(err, unix.EROFS):
		hint = "is on a read-only file system: models can be loaded from it, but not added or promoted; remount it, or use a store elsewhere"
	case errors.Is(err, fs.ErrPermission):
		hint = "may not be written by this user; run the command as the user that owns it"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		hint = "is on a file system that is full; 'lacuna models gc' makes room"
	default:
		return err
	}
	return fmt.Errorf("model store %s %s: %w", s.dir, hint, err)
}
