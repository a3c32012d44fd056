package zarr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"lacuna/publish"
	"lacuna/publish/netcdf"
	"lacuna/publish/s3"
)

// objects is the place of stores: whole objects by their keys, with slashes. A
// bucket is one, and a folder.
type objects interface {
	// Get returns an object; nil where there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put writes an object, whole or not at all, and for good.
	Put(ctx context.Context, key string, content []byte, kind string) error
	// Remove removes an object that may not be there.
	Remove(ctx context.Context, key string) error
	// Move gives an object another key. Where there is none it does nothing.
	Move(ctx context.Context, from, to string) error
	// List calls each with the keys below a prefix that were written since a time.
	List(ctx context.Context, prefix string, since time.Time, each func(key string) error) error
}

// Sink keeps the products of each dataset in a Zarr store. It is a publish.Sink.
type Sink struct {
	name    string
	objects objects
	check   func(ctx context.Context) error
	read    func(image []byte) (netcdf.File, error)
	mark    *publish.Mark // of a folder, which may be on a disk that goes away; nil: a bucket
}

var (
	_ publish.Sink     = (*Sink)(nil)
	_ publish.Place    = (*Sink)(nil)
	_ publish.Foldered = (*Sink)(nil)
)

// FolderName is the name of the sink of a folder in the ledger.
const FolderName = "zarr"

// InFolder returns the sink of stores in a folder. It touches nothing; Publish
// does.
func InFolder(dir string) *Sink {
	f := folder{root: dir}
	return &Sink{name: FolderName, objects: f, check: f.check, read: netcdf.Read, mark: new(publish.Mark)}
}

// InBucket returns the sink of stores in a bucket. It touches nothing; Publish
// does.
func InBucket(cfg s3.Config) (*Sink, error) {
	bucket, err := s3.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Sink{name: BucketName(cfg), objects: bucket, check: bucket.Check, read: netcdf.Read}, nil
}

// BucketName is the name of the sink of a bucket in the ledger.
func BucketName(cfg s3.Config) string { return "zarr:" + path.Join(cfg.Bucket, cfg.Prefix) }

// Name implements publish.Sink.
func (s *Sink) Name() string { return s.name }

// Check tests that stores can be kept here. An error names the remedy.
func (s *Sink) Check(ctx context.Context) error { return s.check(ctx) }

// Publish puts a revision into the slots of its times, unless a later one is
// there.
func (s *Sink) Publish(ctx context.Context, p publish.Product) error {
	if err := check(ctx, p); err != nil {
		return err
	}
	image, err := readFile(p)
	if err != nil {
		return err
	}
	m, err := s.manifest(ctx, p)
	if err != nil {
		return err
	}
	if err := m.Conflict(p); err != nil {
		return err
	}
	there, known := m.Entry(p.Granule)
	if known && there.Live() && there.Revision == p.Revision {
		return nil // the manifest is written last
	}
	next, current := m.Add(entryOf(p))
	if !current {
		return s.list(ctx, p, next)
	}
	f, err := s.read(image)
	if err != nil {
		return fmt.Errorf("%w: %w; fill the granule again", publish.ErrPermanent, err)
	}
	c, err := newContent(f, p)
	if err != nil {
		return err
	}
	st, err := s.open(ctx, p.Dataset)
	if err != nil {
		return err
	}
	if err := st.fits(c); err != nil {
		return err
	}
	if known && there.Live() {
		withdrawn, _ := m.Add(there.Withdrawn())
		if err := s.list(ctx, p, withdrawn); err != nil {
			return err
		}
	}
	if err := st.show(ctx, c, p.Granule); err != nil {
		return fmt.Errorf("%s: %w", st.prefix, err)
	}
	return s.list(ctx, p, next)
}

// Retract empties the slots of a revision and puts the reason into the manifest.
func (s *Sink) Retract(ctx context.Context, p publish.Product) error {
	if err := check(ctx, p); err != nil {
		return err
	}
	m, err := s.manifest(ctx, p)
	if err != nil {
		return err
	}
	next, current, err := m.Withdraw(p, entryOf(p))
	if err != nil {
		return err
	}
	if err := s.list(ctx, p, next); err != nil || !current {
		return err
	}
	st, err := s.open(ctx, p.Dataset)
	if err != nil {
		return err
	}
	if err := st.retract(ctx, p); err != nil {
		return fmt.Errorf("%s: %w", st.prefix, err)
	}
	return nil
}

// entryOf returns the manifest entry of p. Its members are not kept.
func entryOf(p publish.Product) publish.Entry {
	p.Members = nil
	return publish.EntryOf(p)
}

func check(ctx context.Context, p publish.Product) error {
	if err := p.Check(); err != nil {
		return err
	}
	if p.Dataset != path.Base(p.Dataset) || strings.HasPrefix(p.Dataset, ".") {
		return fmt.Errorf("%w: dataset %q cannot be the name of a store", publish.ErrPermanent, p.Dataset)
	}
	return ctx.Err()
}

// readFile reads the file of p and checks that it has the promised bytes.
func readFile(p publish.Product) ([]byte, error) {
	image, err := os.ReadFile(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: its file %s is gone; fill the granule again", publish.ErrPermanent, p.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("read product: %w", err)
	}
	hash := sha256.Sum256(image)
	if sum := hex.EncodeToString(hash[:]); sum != p.SHA256 {
		return nil, fmt.Errorf("%w: its file %s has sha256 %s, not %s; fill the granule again", publish.ErrPermanent, p.Path, sum, p.SHA256)
	}
	return image, nil
}
