// Package durable makes what was written outlast a power cut. It knows nothing
// of what the files hold.
package durable

import (
	"errors"
	"os"
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
