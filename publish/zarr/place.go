package zarr

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/publish"
)

const (
	ownerKey  = ".lacuna-owner.json"
	manifests = ".manifests"
	jsonKind  = "application/json"
)

// Owner implements publish.Place.
func (s *Sink) Owner(ctx context.Context) (o publish.Owner, err error) {
	text, err := s.objects.Get(ctx, ownerKey)
	if err == nil {
		err = s.mark.Look(text != nil)
	}
	if err != nil || text == nil {
		return publish.Owner{}, err
	}
	if json.Unmarshal(text, &o) != nil || o.State == "" {
		return publish.Owner{}, fmt.Errorf("read %s of %s: %w", ownerKey, s.name, publish.ErrMarker)
	}
	return o, nil
}

// Folder implements publish.Foldered.
func (s *Sink) Folder() (string, *publish.Mark) {
	f, _ := s.objects.(folder)
	return f.root, s.mark
}

// Claim implements publish.Place.
func (s *Sink) Claim(ctx context.Context, o publish.Owner) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	return s.objects.Put(ctx, ownerKey, append(text, '\n'), jsonKind)
}

// readers is the number of manifests that are read at once: those of many years in
// a bucket, one after the other, would take minutes.
const readers = 16

// Holdings implements publish.Place. An unreadable manifest is skipped: the next
// delivery to that day reports it.
func (s *Sink) Holdings(ctx context.Context, since time.Time, each func(publish.Holding) error) error {
	var turn sync.Mutex // one call of each at a time
	reading, work := errgroup.WithContext(ctx)
	reading.SetLimit(readers)
	listed := s.objects.List(work, manifests, since, func(key string) error {
		reading.Go(func() error {
			text, err := s.objects.Get(work, key)
			if err != nil || !publish.IsManifest(key) {
				return err
			}
			m, err := publish.ParseManifest(text)
			if err != nil {
				return nil //nolint:nilerr // the next delivery to that day reports it
			}
			turn.Lock()
			defer turn.Unlock()
			for _, h := range m.Holdings() {
				if err := each(h); err != nil {
					return err
				}
			}
			return nil
		})
		return work.Err()
	})
	if err := reading.Wait(); err != nil {
		return err // the listing ends with it
	}
	return listed
}

func manifestKey(p publish.Product) string {
	return path.Join(manifests, publish.DefaultFolders.Folder(p.Dataset, p.Time), publish.ManifestName(p.Time))
}

// manifest reads the manifest of the day of p.
func (s *Sink) manifest(ctx context.Context, p publish.Product) (m publish.Manifest, err error) {
	text, err := s.objects.Get(ctx, manifestKey(p))
	if err != nil {
		return m, err
	}
	if text != nil {
		if m, err = publish.ParseManifest(text); err != nil {
			return m, fmt.Errorf("%s: %w; remove it and replay the day", manifestKey(p), err)
		}
	}
	m.Dataset, m.Day = p.Dataset, publish.Day(p.Time)
	return m, nil
}

// list writes the manifest of the day of p.
func (s *Sink) list(ctx context.Context, p publish.Product, m publish.Manifest) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	return s.objects.Put(ctx, manifestKey(p), text, jsonKind)
}
