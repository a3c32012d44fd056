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

// Retention sets which versions garbage collection keeps besides champions,
// former champions that a rollback can reach, the ancestors of both, and pinned
// ones.
type Retention struct {
	Newest int           // the newest versions of every dataset
	Young  time.Duration // versions younger than this: they may be about to be judged
}

// Sweep is the result of garbage collection, or its plan.
type Sweep struct {
	Kept    []Kept   `json:"kept"`
	Removed []string `json:"removed"`
	Bytes   int64    `json:"bytes"` // size of the removed versions
	// Leftovers is the number of removed folders of killed writers and
	// collectors; a dry run does not look for them.
	Leftovers int `json:"leftovers"`
}

// Kept is a version that stays, and the first reason for it.
type Kept struct {
	Version string `json:"version"`
	Why     string `json:"why"`
}

// GC removes the versions that nothing keeps. With dry it only returns them. A
// reader that is loading a version meanwhile reads it to the end or finds it
// gone, never half of it. A version whose card is damaged is not touched:
// nobody knows whether it is needed.
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
	// Leftovers of an earlier collector go first, so that they can be counted.
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

// plan chooses the versions to remove. Where the log is damaged it fails, for a
// champion might be named in the damaged part.
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

// age returns the time since a version came into this store; 0 where that is
// not known.
func (s *Store) age(v *Version) time.Duration {
	info, err := os.Stat(v.dir)
	if err != nil {
		return 0
	}
	return s.now().Sub(info.ModTime())
}

// reasons returns the reason of every version that must be kept. It is a pure
// function of its arguments.
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
			for range versions { // no chain of ancestors is longer
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

// emptyTrash deletes the versions in the trash and returns their number.
func (s *Store) emptyTrash() (int, error) {
	var errs []error
	names := s.entries("trash")
	for _, name := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(s.dir, "trash", name)))
	}
	return len(names), errors.Join(errs...)
}

// sweepIncoming removes the folders of dead writers. A living one holds the
// lock of its folder.
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
