// Package durable makes what was written outlast a power cut. It knows nothing
// of what the files hold.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sync brings to the disk what is at path: the bytes of a file, or the names
// in a folder, without which a rename in it may be lost.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// MakeFolders makes a folder and those above it that are missing, each on the
// disk before anything is put into it: a folder whose own name is lost takes
// along all that was synced in it.
func MakeFolders(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeFolders(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return Sync(parent)
}

// Link gives a file another name, in a folder that is made where it is missing. A
// name that is there already stays what it is.
func Link(file, name string) error {
	folder := filepath.Dir(name)
	if err := MakeFolders(folder); err != nil {
		return err
	}
	if err := os.Link(file, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return Sync(folder)
}
