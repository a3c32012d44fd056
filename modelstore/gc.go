package modelstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Retention says what garbage collection keeps besides champions, what can be
// rolled back to, the ancestors of both, and what is pinned.
type Retention struct {
	Newest int           // versions of every dataset
	Young  time.Duration // versions that came into the store no longer ago: they may be being judged
}

// Sweep is what garbage collection did, or would do.
type Sweep struct {
	Kept    []Kept   `json:"kept"`
	Removed []string `json:"removed"`
	Bytes   int64    `json:"bytes"` // of what was removed
	// Leftovers is how many folders of writers and collectors that did not live
	// to finish were removed; a dry run does not look for them.
	Leftovers int `json:"leftovers"`
}

// Kept is a version that stays, and the first reason that it does.
type Kept struct {
	Version string `json:"version"`
	Why     string `json:"why"`
}

// GC removes the versions that nothing keeps. With dry it only says which. A
// reader that is loading a version meanwhile reads it to the end or finds it
// gone, never half of it. A version whose card is damaged is not touched:
// nobody can say what it is.
func (s *Store) GC(ctx context.Context, keep Retention, dry bool) (Sweep, error) {
	if dry {
		return s.plan(keep)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Sweep{}, fmt.Errorf("collect garbage: %w", err)
	}
	defer unlock()
	sweep, err := s.plan(keep)
	if err != nil {
		return Sweep{}, err
	}
	// What an earlier collector left goes first, so that it can be counted.
	trash, err1 := s.emptyTrash()
	incoming, err2 := s.sweepIncoming()
	sweep.Leftovers = trash + incoming
	for _, id := range sweep.Removed {
		if err := s.toTrash(id); err != nil {
			return Sweep{}, fmt.Errorf("collect garbage: %w", err)
		}
	}
	_, err3 := s.emptyTrash()
	if err := errors.Join(err1, err2, err3, s.mendModes(sweep.Kept)); err != nil {
		return sweep, fmt.Errorf("collect garbage: %w", s.explain(err))
	}
	return sweep, nil
}

// plan decides what to remove. Where the log is damaged it decides nothing, for
// a champion might be named in the part that cannot be trusted.
func (s *Store) plan(keep Retention) (Sweep, error) {
	h, err := s.readHistory()
	if err != nil {
		return Sweep{}, fmt.Errorf("collect garbage: %w", err)
	}
	if h.bad != nil {
		return Sweep{}, fmt.Errorf("collect garbage: %w", h.bad)
	}
	versions, bad, err := s.List()
	if err != nil {
		return Sweep{}, fmt.Errorf("collect garbage: %w", err)
	}
	pins, err := s.Pins()
	if err != nil {
		return Sweep{}, err
	}
	why := reasons(h, versions, pins, keep.Newest)
	sweep := Sweep{Kept: []Kept{}, Removed: []string{}} // none is an empty list in JSON, not null
	for _, err := range bad {
		var b *BadVersion
		if errors.As(err, &b) {
			sweep.Kept = append(sweep.Kept, Kept{b.Version, "damaged: " + b.File + ": " + b.Wrong})
		}
	}
	for _, v := range versions {
		reason := why[v.ID]
		if reason == "" && keep.Young > 0 && s.age(v) < keep.Young {
			reason = "came in recently"
		}
		if reason != "" {
			sweep.Kept = append(sweep.Kept, Kept{v.ID, reason})
			continue
		}
		sweep.Removed = append(sweep.Removed, v.ID)
		sweep.Bytes += v.Bytes()
	}
	return sweep, nil
}

// age returns how long a version has been in this store. Where that cannot be
// told it is young.
func (s *Store) age(v *Version) time.Duration {
	info, err := os.Stat(v.dir)
	if err != nil {
		return 0
	}
	return s.now().Sub(info.ModTime())
}

// reasons says for every version that must be kept why. It is pure: what is
// kept depends on nothing but its arguments.
func reasons(h *history, versions []*Version, pins map[string]Pin, newest int) map[string]string {
	byID := map[string]*Version{}
	for _, v := range versions {
		byID[v.ID] = v
	}
	why := map[string]string{}
	give := func(id, reason string) {
		if why[id] == "" {
			why[id] = reason
		}
	}
	for dataset, line := range h.lines {
		for i, e := range line {
			if i == len(line)-1 {
				why[e.Version] = "champion of " + dataset
			} else {
				give(e.Version, "former champion of "+dataset)
			}
		}
	}
	for id := range pins {
		give(id, "pinned")
	}
	for _, line := range h.lines {
		for _, e := range line {
			child := byID[e.Version]
			for range versions { // no line of ancestors is longer
				if child == nil || child.Card.Parent == "" {
					break
				}
				give(child.Card.Parent, "ancestor of "+e.Version)
				child = byID[child.Card.Parent]
			}
		}
	}
	count := map[string]int{}
	byAge := slices.SortedFunc(slices.Values(versions), func(a, b *Version) int {
		return cmp.Or(b.Card.Created.Compare(a.Card.Created), cmp.Compare(a.ID, b.ID))
	})
	for _, v := range byAge {
		if count[v.Card.Dataset]++; count[v.Card.Dataset] <= newest {
			give(v.ID, "among the newest")
		}
	}
	return why
}

// toTrash takes a version out of the store in one step. Readers that have its
// files open go on reading; all others find the whole version gone.
func (s *Store) toTrash(id string) error {
	dir := s.versionDir(id)
	if err := os.Chmod(dir, folderMode); err != nil { // a folder that may not be written cannot be moved
		return s.explain(err)
	}
	grave, err := os.MkdirTemp(filepath.Join(s.dir, "trash"), "g-*")
	if err != nil {
		return s.explain(err)
	}
	if err := os.Rename(dir, filepath.Join(grave, id)); err != nil {
		return s.explain(err)
	}
	return errors.Join(syncFolder(filepath.Dir(dir)), syncFolder(grave))
}

// emptyTrash deletes what is in the trash and says how much that was.
func (s *Store) emptyTrash() (int, error) {
	var errs []error
	graves := s.entries("trash")
	for _, name := range graves {
		errs = append(errs, os.RemoveAll(filepath.Join(s.dir, "trash", name)))
	}
	return len(graves), errors.Join(errs...)
}

// sweepIncoming removes what dead writers left. A living one holds the lock of
// its folder.
func (s *Store) sweepIncoming() (int, error) {
	var errs []error
	swept := 0
	for _, name := range s.entries("incoming") {
		dir := filepath.Join(s.dir, "incoming", name)
		handle, err := lockFolder(dir)
		if err != nil {
			continue // in use, or just placed
		}
		errs = append(errs, os.RemoveAll(dir), handle.Close())
		swept++
	}
	return swept, errors.Join(errs...)
}

// mendModes takes the write permission from versions whose writer died between
// placing them and doing so.
func (s *Store) mendModes(kept []Kept) error {
	var errs []error
	for _, k := range kept {
		dir := s.versionDir(k.Version)
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm() != readOnlyFolder {
			errs = append(errs, os.Chmod(dir, readOnlyFolder))
		}
	}
	return errors.Join(errs...)
}

// entries returns the names in a folder of the store; none if it is not there.
func (s *Store) entries(folder string) []string {
	list, err := os.ReadDir(filepath.Join(s.dir, folder))
	if err != nil {
		return nil
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names
}

// isMissing reports whether there is no such file.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
