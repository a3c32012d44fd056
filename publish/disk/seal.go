package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"lacuna/publish"
)

// sealedMode is the mode of a file whose bytes were promised: nobody may write
// to it. A mode goes with the file wherever it is copied, and needs no ledger.
const sealedMode = 0o444

// Seal protects the file of a revision from Put. It comes before the promise: a
// crash in between leaves a number that is not used if the bytes are others the
// next time, and never two files of one number.
func (s Store) Seal(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(sealedMode), f.Sync(), f.Close())
}

// checkPromised refuses bytes with the hash next under the number of a
// revision that was promised with others. there is the hash of the file that
// the revision has; empty: none.
func (s Store) checkPromised(item Item, there, next string) error {
	p := publish.Product{Dataset: item.Dataset, Granule: item.Granule, Revision: item.Revision, SHA256: next}
	m, err := s.manifestOf(item)
	if err != nil {
		return err
	}
	if err := m.Conflict(p); err != nil {
		return err
	}
	info, err := os.Stat(s.revisionPath(item))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	sealed := info.Mode().Perm()&0o222 == 0
	mended := slices.ContainsFunc(m.Holdings(), func(h publish.Holding) bool {
		return h.Granule == item.Granule && h.Revision == item.Revision && h.SHA256 == next
	}) // a damaged file may be replaced by the promised bytes
	if !sealed || mended || !publish.Differs(there, next) {
		return nil
	}
	return &publish.Conflict{ID: p.ID(), SHA256: next, There: there, Highest: item.Revision}
}

// manifestOf returns the manifest of the day of item.
func (s Store) manifestOf(item Item) (publish.Manifest, error) {
	return loadManifest(filepath.Join(s.Root, filepath.FromSlash(s.Folders.Folder(item.Dataset, item.Time)), publish.ManifestName(item.Time)))
}
