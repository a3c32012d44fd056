package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lacuna/internal/durable"
	"lacuna/publish"
)

var (
	_ publish.Place    = (*Sink)(nil)
	_ publish.Foldered = (*Sink)(nil)
	_ publish.Foldered = Store{}
)

// ownerName is the marker file with the owner of the folder of products. It is
// hidden, so that a listing of the folder shows datasets only.
const ownerName = ".lacuna-owner.json"

// Owner implements publish.Place.
func (s *Sink) Owner(ctx context.Context) (publish.Owner, error) { return s.store.Owner(ctx) }

// Claim implements publish.Place.
func (s *Sink) Claim(ctx context.Context, o publish.Owner) error { return s.store.Claim(ctx, o) }

// Folder implements publish.Foldered.
func (s *Sink) Folder() (string, *publish.Mark) { return s.store.Folder() }

// Folder implements publish.Foldered.
func (s Store) Folder() (string, *publish.Mark) { return s.Root, s.Mark }

// Owner returns the state that owns the folder.
func (s Store) Owner(context.Context) (o publish.Owner, err error) {
	path := filepath.Join(s.Root, ownerName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.Mark.Look(false); err != nil {
			return publish.Owner{}, fmt.Errorf("%s: %w", s.Root, err)
		}
		return publish.Owner{}, s.Hold.keep(s.Root)
	}
	if err == nil {
		_ = s.Mark.Look(true)
	}
	if err == nil && (json.Unmarshal(text, &o) != nil || o.State == "") {
		err = publish.ErrMarker
	}
	if err != nil {
		return publish.Owner{}, fmt.Errorf("read %s: %w", path, err)
	}
	return o, s.Hold.keep(s.Root)
}

// Claim writes the marker of the folder.
func (s Store) Claim(ctx context.Context, o publish.Owner) (err error) {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	if err := errors.Join(ctx.Err(), durable.MakeFolders(s.Root)); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(s.Root, stagingPattern)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	return writeFile(staging, filepath.Join(s.Root, ownerName), append(text, '\n'))
}

// Holdings implements publish.Place. It reads the manifests that were written
// since; an unreadable one is skipped, for the next delivery to that day
// reports it.
func (s *Sink) Holdings(ctx context.Context, since time.Time, each func(publish.Holding) error) error {
	return s.store.Manifests(ctx, since, func(m publish.Manifest) error {
		for _, h := range m.Holdings() {
			if err := each(h); err != nil {
				return err
			}
		}
		return nil
	})
}

// Manifests calls each with the manifests that were written since a time and
// can be read.
func (s Store) Manifests(ctx context.Context, since time.Time, each func(publish.Manifest) error) error {
	return s.eachFolder(func(folder string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return manifestsSince(folder, since, each)
	})
}

func manifestsSince(folder string, since time.Time, each func(publish.Manifest) error) error {
	paths, err := manifestsIn(folder)
	if err != nil {
		return err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.ModTime().Before(since) {
			continue
		}
		if err != nil {
			return err
		}
		m, err := loadManifest(path)
		if err != nil {
			continue
		}
		if err := each(m); err != nil {
			return err
		}
	}
	return nil
}
