// Package durable makes what was written outlast a power cut. It knows nothing
// of what the files hold.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
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

// WriteFile replaces the content of a file, or leaves it as it was: nobody sees half of
// it.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	return renameio.WriteFile(path, content, mode, beside(path))
}

// A File is unfinished: CloseAtomicallyReplace puts it in its place, and Cleanup removes it.
type File = renameio.PendingFile

// Pending returns a file that takes the place of another one when it is whole.
func Pending(path string, mode os.FileMode) (*File, error) {
	return renameio.NewPendingFile(path, renameio.WithPermissions(mode), beside(path))
}

// beside has an unfinished file lie in the folder that it is for, where whoever sweeps that
// folder finds it. The library would rather have it in the one for temporary files, finds
// out by two further files each time whether it can be moved from there, and a process
// that is killed leaves all three.
func beside(path string) renameio.Option { return renameio.WithTempDir(filepath.Dir(path)) }
