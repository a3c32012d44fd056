package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"lacuna/publish"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

var _ publish.Place = (*Sink)(nil)

// ownerKey is the key of the marker object with the owner of the prefix.
func (s *Sink) ownerKey() string { return path.Join(s.cfg.Prefix, ".lacuna-owner.json") }

// Owner implements publish.Place.
func (s *Sink) Owner(ctx context.Context) (o publish.Owner, err error) {
	text, err := s.get(ctx, s.ownerKey())
	if err != nil || text == nil {
		return publish.Owner{}, err
	}
	if json.Unmarshal(text, &o) != nil || o.State == "" {
		return publish.Owner{}, fmt.Errorf("read %s: %w", s.ownerKey(), publish.ErrMarker)
	}
	return o, nil
}

// Claim implements publish.Place.
func (s *Sink) Claim(ctx context.Context, o publish.Owner) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	return s.put(ctx, s.ownerKey(), append(text, '\n'), "application/json")
}

// Holdings implements publish.Place. It lists the prefix and reads the
// manifests that were written since. An unreadable one is skipped: the next
// delivery to that day reports it.
func (s *Sink) Holdings(ctx context.Context, since time.Time, each func(publish.Holding) error) error {
	return s.Manifests(ctx, since, func(m publish.Manifest) error {
		for _, h := range m.Holdings() {
			if err := each(h); err != nil {
				return err
			}
		}
		return nil
	})
}

// readers is the number of manifests that are read at once: a hundred thousand,
// one after the other, would take the better part of an hour.
const readers = 16

// Manifests calls each, one at a time, with the manifests that were written
// since a time and can be read.
func (s *Sink) Manifests(ctx context.Context, since time.Time, each func(publish.Manifest) error) error {
	prefix := ""
	if s.cfg.Prefix != "" {
		prefix = path.Clean(s.cfg.Prefix) + "/"
	}
	var turn sync.Mutex // one call of each at a time
	reading, work := errgroup.WithContext(ctx)
	reading.SetLimit(readers)
	for o := range s.client.ListObjects(work, s.cfg.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			reading.Go(func() error { return fmt.Errorf("list %s: %w", s.Name(), o.Err) })
			break
		}
		if !publish.IsManifest(o.Key) || o.LastModified.Before(since) {
			continue
		}
		reading.Go(func() error {
			text, err := s.get(work, o.Key)
			if err != nil {
				return err
			}
			m, err := publish.ParseManifest(text)
			if err != nil {
				return nil //nolint:nilerr // the next delivery to that day reports it
			}
			turn.Lock()
			defer turn.Unlock()
			return each(m)
		})
	}
	return errors.Join(reading.Wait(), ctx.Err())
}
