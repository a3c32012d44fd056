package modelstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Serving is the version that serves a dataset.
type Serving struct {
	Version *Version
	Entry   Entry // entry that made it champion

	// Problems is empty if the newest champion serves. Else it holds the
	// reasons why an older one does: a *BadVersion for each that did not load,
	// newest first, and a *BadLog if the log is damaged.
	Problems []error
}

// LoadChampion returns the champion of a dataset, checked. If it does not pass
// its checks, the champion before it serves, and so on: the last good version.
// The error is ErrNoChampion where nothing was ever promoted.
func (s *Store) LoadChampion(dataset string) (Serving, error) {
	h, err := s.readHistory()
	if err != nil {
		return Serving{}, err
	}
	var serving Serving
	if h.bad != nil {
		serving.Problems = append(serving.Problems, h.bad)
	}
	tried := map[string]bool{}
	for _, e := range backwards(h.lines[dataset]) {
		if tried[e.Version] {
			continue
		}
		tried[e.Version] = true
		if serving.Version, err = s.loadAs(e); err == nil {
			serving.Entry = e
			return serving, nil
		}
		serving.Problems = append(serving.Problems, err)
	}
	return Serving{}, fmt.Errorf("dataset %s: %w", dataset, errors.Join(append([]error{ErrNoChampion}, serving.Problems...)...))
}

// loadAs loads the version that an entry promoted. The entry has the whole hash
// of the card, the name of the version only its beginning.
func (s *Store) loadAs(e Entry) (*Version, error) {
	v, err := s.Load(e.Version)
	if errors.Is(err, ErrNotFound) {
		return nil, &BadVersion{Version: e.Version, File: CardFile, Wrong: "missing, with its folder", Err: err}
	}
	if err != nil {
		return nil, err
	}
	sum, err := s.cardSum(e.Version)
	if err != nil {
		return nil, err
	}
	if sum != e.CardSHA256 {
		return nil, &BadVersion{Version: e.Version, File: CardFile, Wrong: "not the card that was promoted"}
	}
	return v, nil
}

func (s *Store) cardSum(id string) (string, error) {
	data, err := readAtMost(filepath.Join(s.versionDir(id), CardFile), maxCardBytes)
	if err != nil {
		return "", (&Version{ID: id}).bad(CardFile, err)
	}
	return hashOf(data), nil
}

// Watch notices changes of the store that may change the serving version, so
// that a process follows a promotion by another without a restart.
type Watch struct {
	store *Store
	seen  stamp
}

// stamp is the fingerprint of a store: the log grows by a promotion, and the
// folder of versions gets a new name when one is restored.
type stamp struct {
	logBytes     int64
	log, folders time.Time
}

// Watch returns a watch on the store from now on. To miss nothing, make it
// before loading the champion.
func (s *Store) Watch() *Watch {
	w := &Watch{store: s}
	w.seen, _ = w.look() // an error shows again in Changed
	return w
}

// Changed reports whether the log or the list of versions changed since the
// last call; if so, LoadChampion may have another answer. It asks the file
// system for two times and a size and opens nothing, so it may be called often.
func (w *Watch) Changed() (bool, error) {
	now, err := w.look()
	if err != nil {
		return false, fmt.Errorf("look for promotions: %w", err)
	}
	changed := now.logBytes != w.seen.logBytes || !now.log.Equal(w.seen.log) || !now.folders.Equal(w.seen.folders)
	w.seen = now
	return changed, nil
}

func (w *Watch) look() (stamp, error) {
	var now stamp
	log, err := os.Stat(w.store.logPath())
	if err != nil && !isMissing(err) {
		return stamp{}, err
	}
	if err == nil {
		now.logBytes, now.log = log.Size(), log.ModTime()
	}
	folders, err := os.Stat(filepath.Join(w.store.dir, "versions"))
	if err != nil && !isMissing(err) {
		return stamp{}, err
	}
	if err == nil {
		now.folders = folders.ModTime()
	}
	return now, nil
}
