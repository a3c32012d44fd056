package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/publish"
)

// Newest calls each with the products of a dataset that can be read and whose
// time lies from one through another, the latest first, until it returns false.
// folder is that of the product, with slashes, below the root. An unreadable
// manifest is skipped, for the next delivery to that day reports it.
func (s Store) Newest(dataset string, from, to time.Time, each func(folder string, e publish.Entry) bool) error {
	if err := checkName(dataset); err != nil {
		return err
	}
	for folder, err := range backward(filepath.Join(s.Root, dataset)) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was published yet
		}
		if err != nil {
			return err
		}
		if on, err := s.newestOf(folder, from, to, each); err != nil || !on {
			return err
		}
	}
	return nil
}

func (s Store) newestOf(path string, from, to time.Time, each func(folder string, e publish.Entry) bool) (on bool, err error) {
	manifests, err := manifestsIn(path)
	if err != nil {
		return false, err
	}
	folder, err := filepath.Rel(s.Root, path)
	if err != nil {
		return false, err
	}
	for _, path := range slices.Backward(manifests) {
		// The name begins with the day, so that most need not be read.
		if name := filepath.Base(path); strings.Compare(name, publish.ManifestName(from)) < 0 || strings.Compare(name, publish.ManifestName(to)) > 0 {
			continue
		}
		m, err := loadManifest(path)
		if err != nil {
			continue
		}
		for _, e := range slices.Backward(m.Products) {
			if e.Live() && !e.Time.Before(from) && !e.Time.After(to) && !each(filepath.ToSlash(folder), e) {
				return false, nil
			}
		}
	}
	return true, nil
}
