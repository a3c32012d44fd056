// Package s3 keeps products in a bucket, in the same tree as package disk
// keeps them in a folder.
//
//	<prefix>/<dataset>/<YYYY>/<MM>/<name>.nc, .nc.sha256, .png, <YYYYMMDD>.manifest.json
//	                              /<name>_members.nc, .nc.sha256
//	<prefix>/<dataset>/latest.json    names the newest product: buckets have no links
//	and a STAC catalogue, as in a folder
//
// An object appears whole or not at all, and carries its sha256 as metadata.
// Where there is a side object or a manifest entry it tells the truth: both
// are taken away before a product is replaced and written after. It takes for
// granted that nobody else writes below the prefix.
//
// Package s3 knows nothing of NetCDF and removes retracted products only: how
// long objects stay, and whether replaced ones are kept, is set on the bucket
// (life cycle, versions).
package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"

	"lacuna/internal/faults"
	"lacuna/publish"
)

// Config is the place of the bucket and the way to log in. Keys come from the
// environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or from a file.
type Config struct {
	Endpoint        string `yaml:"endpoint"`         // scheme and host, as in https://s3.example.org
	Region          string `yaml:"region"`           // part of a signature
	Bucket          string `yaml:"bucket"`           // bucket of the products; it must exist
	Prefix          string `yaml:"prefix"`           // folder of the products; empty: the whole bucket
	CredentialsFile string `yaml:"credentials_file"` // credentials file of the AWS tools; empty: their default
	Profile         string `yaml:"profile"`          // section of that file
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{Region: "us-east-1"} // expected by hosts without regions
}

// Validate reports everything wrong with c.
func (c Config) Validate() error {
	var errs faults.List
	u, err := url.Parse(c.Endpoint)
	errs.Check(err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https"),
		"endpoint must be like https://s3.example.org")
	errs.Check(c.Bucket != "" && !strings.Contains(c.Bucket, "/"), "bucket is %q, must be a name without slashes", c.Bucket)
	errs.Check(!strings.HasPrefix(c.Prefix, "/"), "prefix is %q, must not begin with a slash", c.Prefix)
	return errs.Err()
}

// Sink shows products in a bucket. It is a publish.Sink.
type Sink struct {
	connection
	folders publish.Folders
}

// New returns the sink of a bucket, with the folders of products below those of
// datasets. It touches nothing; Publish does.
func New(cfg Config, folders publish.Folders) (*Sink, error) {
	c, err := connect(cfg)
	return &Sink{c, folders}, err
}

// Name implements publish.Sink.
func (s *Sink) Name() string { return "s3:" + path.Join(s.cfg.Bucket, s.cfg.Prefix) }

// Publish shows a revision as the current one of its product, unless a later
// one is there.
func (s *Sink) Publish(ctx context.Context, p publish.Product) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := p.CheckFiles(); err != nil {
		return err
	}
	d, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	if err := errors.Join(d.checkOwner(p), d.manifest.Conflict(p)); err != nil {
		return err
	}
	entry := publish.EntryOf(p)
	if _, err := os.Stat(p.Path + ".png"); err == nil {
		entry.QuickLook = path.Base(d.picture())
	}
	next, current := d.manifest.Add(entry)
	if !current {
		return d.write(ctx, next)
	}
	if err := d.show(ctx, p, entry); err != nil {
		return err
	}
	if err := d.write(ctx, next); err != nil {
		return err
	}
	if err := s.setLatest(ctx, p.Dataset, d.folder, entry); err != nil {
		return err
	}
	if err := d.removeFormer(ctx, p.Granule); err != nil {
		return err
	}
	return d.catalogue(ctx, p, true)
}

// Retract removes a revision and puts the reason into the manifest.
func (s *Sink) Retract(ctx context.Context, p publish.Product) error {
	if err := p.Check(); err != nil {
		return err
	}
	d, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	next, current, err := d.manifest.Withdraw(p, publish.EntryOf(p))
	if err != nil {
		return err
	}
	if err := d.write(ctx, next); err != nil || !current {
		return err
	}
	if _, taken := next.Owner(p.Name); !taken { // else another product has the name by now
		if err := s.removeAll(ctx, d.keys()...); err != nil {
			return err
		}
	}
	if err := s.findLatest(ctx, p.Dataset); err != nil {
		return err
	}
	return d.catalogue(ctx, p, false)
}

// latest is the content of <dataset>/latest.json.
type latest struct {
	Key string `json:"key"` // key of the newest product
	publish.Entry
}

// setLatest makes entry the newest of its dataset unless a newer one is.
func (s *Sink) setLatest(ctx context.Context, dataset, folder string, entry publish.Entry) error {
	there, err := s.get(ctx, s.latestKey(dataset))
	if err != nil {
		return err
	}
	var newest latest
	if err := json.Unmarshal(there, &newest); err == nil && newest.Time.After(entry.Time) {
		return nil
	}
	text, err := json.MarshalIndent(latest{Key: path.Join(folder, entry.File), Entry: entry}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode latest: %w", err)
	}
	if bytes.Equal(text, there) {
		return nil
	}
	return s.put(ctx, s.latestKey(dataset), text, "application/json")
}

// findLatest goes through the manifests of a dataset for its newest product,
// after the newest was taken away.
func (s *Sink) findLatest(ctx context.Context, dataset string) error {
	var found publish.Entry
	folder := ""
	objects := s.client.ListObjects(ctx, s.cfg.Bucket, minio.ListObjectsOptions{Prefix: path.Join(s.cfg.Prefix, dataset) + "/", Recursive: true})
	for o := range objects {
		if o.Err != nil {
			return fmt.Errorf("list %s: %w", dataset, o.Err)
		}
		if !publish.IsManifest(o.Key) {
			continue
		}
		m, err := s.manifest(ctx, o.Key)
		if err != nil {
			return err
		}
		if e, ok := m.Newest(); ok && !e.Time.Before(found.Time) {
			found, folder = e, path.Dir(o.Key)
		}
	}
	if err := s.remove(ctx, s.latestKey(dataset)); err != nil || folder == "" {
		return err
	}
	return s.setLatest(ctx, dataset, folder, found)
}

// removeAll removes the objects that are there.
func (s *Sink) removeAll(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := s.remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sink) latestKey(dataset string) string {
	return path.Join(s.cfg.Prefix, dataset, "latest.json")
}

func (s *Sink) manifest(ctx context.Context, key string) (publish.Manifest, error) {
	text, err := s.get(ctx, key)
	if err != nil || text == nil {
		return publish.Manifest{}, err
	}
	m, err := publish.ParseManifest(text)
	if err != nil {
		return publish.Manifest{}, fmt.Errorf("%s: %w; remove it and replay the day", key, err)
	}
	return m, nil
}
