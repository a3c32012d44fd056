package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lacuna/internal/durable"
)

// lockFolder keeps others, of this process or another, from changing dir, so
// that no side file ends up beside another's product.
func lockFolder(dir string) (unlock func() error, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock folder: %w", err), d.Close())
	}
	return d.Close, nil // closing gives the lock up
}

// sumAndSync returns the sha256 and the size of a file, and makes sure that
// its bytes are on the disk.
func sumAndSync(path string) (sum string, bytes int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	bytes, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), bytes, errors.Join(err, f.Sync(), f.Close())
}

// linkOrCopy gives a file a second name. Where the file system has no hard
// links it is a copy.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Sync(), dst.Close())
}

// writeFile writes a whole file by way of a folder for unfinished work.
func writeFile(staging, path string, content []byte) error {
	staged := filepath.Join(staging, filepath.Base(path)+".new")
	if err := os.WriteFile(staged, content, fileMode); err != nil {
		return err
	}
	if _, _, err := sumAndSync(staged); err != nil {
		return err
	}
	if err := os.Rename(staged, path); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// removeAll removes the files that are there and makes that last.
func removeAll(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return durable.Sync(filepath.Dir(paths[0]))
}

// Sweep removes unfinished files of killed processes. No other process may be
// at work on the store.
func (s Store) Sweep() error {
	err := filepath.WalkDir(s.Root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), strings.TrimSuffix(stagingPattern, "*")):
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sweep products: %w", err)
	}
	return nil
}
