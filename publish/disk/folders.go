package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lacuna/publish"
)

// CheckFolders returns why products cannot lie in the folders of s: those that are
// there lie in others. A revision would not find the one that it replaces.
func (s Store) CheckFolders() error {
	datasets, err := os.ReadDir(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range datasets {
		if !d.IsDir() || checkName(d.Name()) != nil {
			continue
		}
		if err := s.checkFolders(d.Name()); err != nil {
			return err
		}
	}
	return nil
}

// checkFolders looks at the last folder of a dataset that has a manifest.
func (s Store) checkFolders(dataset string) error {
	for folder, err := range backward(filepath.Join(s.Root, dataset)) {
		if err != nil {
			return err
		}
		manifests, err := manifestsIn(folder)
		if err != nil {
			return err
		}
		if len(manifests) == 0 {
			continue
		}
		name := filepath.Base(manifests[0])
		day, err := time.Parse("20060102", name[:min(len(name), len("20060102"))])
		if err != nil {
			continue // not one of ours
		}
		if want := filepath.Join(s.Root, filepath.FromSlash(s.Folders.Folder(dataset, day))); want != folder {
			return fmt.Errorf("products of %s lie in folders like %s, and publish.folders would have %s: set it back, or name another products_dir",
				publish.Day(day), filepath.ToSlash(relative(s.Root, folder)), filepath.ToSlash(relative(s.Root, want)))
		}
		return nil
	}
	return nil
}
