package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/publish"
	"lacuna/publish/stac"
)

// Class is a group of files with one retention time.
type Class string

// The classes.
const (
	NearRealTime Class = publish.NearRealTime
	Delayed      Class = publish.Delayed
	Superseded   Class = "superseded" // replaced by a later revision, or retracted
)

// Keep is the retention time of each class, from when a file was made or
// replaced. A class that is not in it, or has 0, stays for ever.
type Keep map[Class]time.Duration

// Removal is a revision whose retention time is over.
type Removal struct {
	Class    Class     `json:"class"`
	Dataset  string    `json:"dataset"`
	Granule  string    `json:"granule"`
	Revision int       `json:"revision"`
	Since    time.Time `json:"since"` // start of its retention time
	Bytes    int64     `json:"bytes"`
	Files    []string  `json:"files"`
	manifest string
}

// Plan returns the revisions whose retention time is over, without removing
// them.
func (s Store) Plan(now time.Time, keep Keep) ([]Removal, error) {
	var due []Removal
	err := s.eachRevision(func(r Removal) {
		if limit := keep[r.Class]; limit > 0 && now.Sub(r.Since) > limit && len(r.Files) > 0 {
			due = append(due, r)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("plan removal of products: %w", err)
	}
	return due, nil
}

// Remove removes the revisions that Plan returned, except those that stays
// keeps because a delivery is still due. It returns the removed ones.
func (s Store) Remove(ctx context.Context, due []Removal, stays func(context.Context, Removal) (bool, error)) ([]Removal, error) {
	var gone []Removal
	for _, r := range due {
		held, err := stays(ctx, r)
		if err != nil {
			return gone, err
		}
		if held {
			continue
		}
		if err := s.remove(r); err != nil {
			return gone, fmt.Errorf("remove revision %d of %s: %w", r.Revision, r.Granule, err)
		}
		gone = append(gone, r)
	}
	return gone, ctx.Err()
}

// remove takes a revision off the manifest, then its files away.
func (s Store) remove(r Removal) (err error) {
	unlock, err := lockFolder(filepath.Join(s.Root, r.Dataset))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	staging, err := os.MkdirTemp(filepath.Dir(r.manifest), stagingPattern)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	m, err := loadManifest(r.manifest)
	if err != nil {
		return err
	}
	there, known := m.Entry(r.Granule)
	current := r.Class != Superseded
	if current && known && there.Revision != r.Revision {
		return nil // replaced since it was planned: it is superseded now
	}
	text, err := unlist(m, r).Encode()
	if err != nil {
		return err
	}
	if err := writeFile(staging, r.manifest, text); err != nil {
		return err
	}
	for _, path := range r.Files {
		if err := removeAll(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := s.linkLatest(r.Dataset, staging); err != nil || !current {
		return err
	}
	return s.catalogue(r.Dataset, filepath.Dir(r.manifest), staging, nil)
}

// unlist returns m without a revision. An entry stays while it lists earlier
// revisions, and that of a retraction for good.
func unlist(m publish.Manifest, r Removal) publish.Manifest {
	m.Products = slices.Clone(m.Products)
	for i := range m.Products {
		e := &m.Products[i]
		if e.Granule != r.Granule {
			continue
		}
		if e.Revision == r.Revision && !e.Retracted {
			*e = e.Withdrawn()
		}
		e.Superseded = slices.DeleteFunc(slices.Clone(e.Superseded), func(s publish.Superseded) bool { return s.Revision == r.Revision })
	}
	m.Products = slices.DeleteFunc(m.Products, func(e publish.Entry) bool {
		return e.Granule == r.Granule && e.Absent && len(e.Superseded) == 0
	})
	return m
}

// Use is the number and the size of the files of a class.
type Use struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Usage returns the use of the disk, by class.
func (s Store) Usage() (map[Class]Use, error) {
	all := map[Class]Use{}
	err := s.eachRevision(func(r Removal) {
		if len(r.Files) > 0 {
			u := all[r.Class]
			all[r.Class] = Use{Files: u.Files + 1, Bytes: u.Bytes + r.Bytes}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("count products: %w", err)
	}
	return all, nil
}

// eachRevision goes through every revision that a manifest knows.
func (s Store) eachRevision(visit func(Removal)) error {
	return s.eachFolder(func(folder string) error { return s.eachIn(folder, visit) })
}

// eachFolder goes through the folders of products of all datasets, the latest
// first.
func (s Store) eachFolder(visit func(folder string) error) error {
	datasets, err := os.ReadDir(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range datasets {
		if !d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			continue
		}
		for folder, err := range backward(filepath.Join(s.Root, d.Name())) {
			if err != nil {
				return err
			}
			if err := visit(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s Store) eachIn(folder string, visit func(Removal)) error {
	manifests, err := manifestsIn(folder)
	if err != nil {
		return err
	}
	for _, path := range manifests {
		m, err := loadManifest(path)
		if err != nil {
			return err
		}
		for _, e := range m.Products {
			for _, r := range s.revisionsOf(m.Dataset, e) {
				r.manifest = path
				visit(r)
			}
		}
	}
	return nil
}

// revisionsOf returns the revisions of an entry whose files are there.
func (s Store) revisionsOf(dataset string, e publish.Entry) []Removal {
	of := func(revision int, bytes int64) Removal {
		r := Removal{Class: Superseded, Dataset: dataset, Granule: e.Granule, Revision: revision, Since: e.Created, Bytes: bytes}
		item := Item{Dataset: dataset, Granule: e.Granule, Name: e.FileOf(revision), Time: e.Time, Revision: revision}
		r.Files = s.filesOf(item)
		if info, err := os.Stat(MembersPath(s.revisionPath(item))); err == nil {
			r.Bytes += info.Size()
		}
		return r
	}
	current := of(e.Revision, e.Size)
	if e.Live() {
		current.Class = Class(e.Mode)
		visible, err := s.Visible(dataset, e.Time, e.File)
		if err == nil {
			members := publish.MembersName(visible)
			current.Files = append([]string{
				stac.ItemName(visible), sideOf(visible), strings.TrimSuffix(visible, ".nc") + pictureEnding, sideOf(members), members, visible,
			}, current.Files...)
		}
	}
	all := []Removal{current}
	for _, old := range e.Superseded {
		all = append(all, of(old.Revision, old.Size))
	}
	return all
}

// filesOf returns the own files of a revision that are there.
func (s Store) filesOf(item Item) []string {
	var files []string
	revision := s.revisionPath(item)
	for _, path := range []string{revision + pictureEnding, MembersPath(revision), revision} {
		if _, err := os.Lstat(path); err == nil {
			files = append(files, path)
		}
	}
	return files
}
