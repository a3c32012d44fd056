package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"lacuna/publish"

	"github.com/minio/minio-go/v7"
)

var _ publish.Place = (*Sink)(nil)

// ownerKey is the object that says whose the prefix is.
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
// manifests that were written since. One that is no manifest is passed over:
// whoever delivers to that day says so.
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

// Manifests calls each with the manifests that were written since a time and
// can be read.
func (s *Sink) Manifests(ctx context.Context, since time.Time, each func(publish.Manifest) error) error {
	prefix := ""
	if s.cfg.Prefix != "" {
		prefix = path.Clean(s.cfg.Prefix) + "/"
	}
	ctx, cancel := context.WithCancel(ctx) // ends the listing where each has had enough
	defer cancel()
	for o := range s.client.ListObjects(ctx, s.cfg.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("list %s: %w", s.Name(), o.Err)
		}
		if !publish.IsManifest(o.Key) || o.LastModified.Before(since) {
			continue
		}
		text, err := s.get(ctx, o.Key)
		if err != nil {
			return err
		}
		m, err := publish.ParseManifest(text)
		if err != nil {
			continue
		}
		if err := each(m); err != nil {
			return err
		}
	}
	return ctx.Err()
}
