// Package zarr is the archive that is a Zarr store with a series of maps: every
// time of it is an object.
//
// The store is a folder, a ZIP file, a bucket on S3 or a place on a web server,
// of version 2 or 3, such as the ARCO stores of Copernicus Marine. A listing
// reads its metadata and its times, an object the chunks that the map of its time
// touches, in the box that is wanted.
//
// Package zarr only reads. Of any axis that is neither time, latitude nor
// longitude it takes the first place.
package zarr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/s3"
	"lacuna/fetch/series"
	"lacuna/fetch/web"
	"lacuna/internal/bbox"
	"lacuna/internal/faults"
	"lacuna/internal/zarr"
)

// Config is the place of the store and what is wanted of it.
type Config struct {
	Store      string        `yaml:"store"`       // a folder or ZIP file on this machine, or an address of http or https
	S3         s3.Config     `yaml:"s3"`          // a bucket that needs keys, instead of store; its prefix is the store
	Group      string        `yaml:"group"`       // group of the store that holds the variables; empty: its root
	Variables  []string      `yaml:"variables"`   // variables to fetch, on one grid
	Reread     time.Duration `yaml:"reread"`      // maps younger than this are read again once a day, for a store does not tell when one changes
	MaxMiB     int           `yaml:"max_mib"`     // largest map that is read
	MaxObjects int           `yaml:"max_objects"` // a listing with more times is cut and is an error
	Web        web.Config    `yaml:",inline"`
	Box        bbox.Box      `yaml:"-"` // the part of the grid that is fetched
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		S3:         s3.DefaultConfig(),
		Variables:  []string{},
		Reread:     10 * 24 * time.Hour, // near-real-time days are replaced within a week or so
		MaxMiB:     512,                 // three variables of an ocean basin at 1 km
		MaxObjects: 200_000,             // more than a century of 4 maps a day
		Web:        web.DefaultConfig(),
	}
}

// Validate reports everything wrong with c; messages begin with the key.
func (c Config) Validate() error {
	var errs faults.List
	u, err := url.Parse(c.Store)
	if err != nil {
		u = &url.URL{} // its text may hold a password
	}
	bucket := c.S3.Bucket != "" || c.S3.Endpoint != ""
	errs.Check((c.Store != "") != bucket, "store is to be a folder, a ZIP file or an address of http or https, or s3 a bucket: give one of them")
	errs.Check(c.Store == "" || u.Host == "" || u.Scheme == "http" || u.Scheme == "https",
		"store is %q, must be a folder, a ZIP file or an address of http or https", web.Shown(u))
	errs.Check(u.User == nil && u.RawQuery == "", "store holds a user or a query")
	errs.Check(c.Group == "" || fs.ValidPath(c.Group), "group is %q, must be a path in the store", c.Group)
	errs.Check(len(c.Variables) > 0, "variables is empty: name the variables to fetch")
	for _, v := range c.Variables {
		errs.Check(fs.ValidPath(v) && v != "." && !strings.Contains(v, "/"), "variables has %q, must be names of arrays", v)
	}
	errs.Check(c.Reread >= 0, "reread is %v, must not be negative", c.Reread)
	errs.Check(c.MaxMiB > 0, "max_mib is %d, must be positive", c.MaxMiB)
	errs.Check(c.MaxObjects > 0, "max_objects is %d, must be positive", c.MaxObjects)
	if bucket {
		errs.Add(faults.In("s3", c.S3.Validate()))
	}
	errs.Add(c.Web.Validate())
	return errs.Err()
}

// Local reports whether the store is on this machine.
func (c Config) Local() bool {
	u, err := url.Parse(c.Store)
	return c.S3.Bucket == "" && (err != nil || u.Host == "")
}

// Place returns the address of the store, for people.
func (c Config) Place() string {
	if c.Store == "" {
		return c.S3.Endpoint + "/" + c.S3.Bucket + "/" + c.S3.Prefix
	}
	return c.Store
}

// source is the store as a series of maps.
type source struct {
	cfg    Config
	client *web.Client
	bucket *s3.Archive

	mu   sync.Mutex // guards grid
	grid *grid      // as it was surveyed last; nil: not yet
}

// New returns the archive of cfg. It checks cfg and touches neither the network
// nor the disk.
func New(cfg Config, politeness fetch.Politeness) (*series.Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("zarr config: %w", err)
	}
	s := &source{cfg: cfg, client: web.New(cfg.Web, politeness)}
	if cfg.Store == "" {
		var err error
		if s.bucket, err = s3.New(cfg.S3, politeness); err != nil {
			return nil, fmt.Errorf("zarr config: %w", err)
		}
	}
	name := strings.TrimSuffix(path.Base(strings.TrimRight(filepath.ToSlash(cfg.Place()), "/")), path.Ext(cfg.Place()))
	if fetch.CheckName(name) != nil || strings.HasPrefix(name, ".") {
		name = cfg.Variables[0]
	}
	shown := series.Config{Name: name, Reread: cfg.Reread, MaxObjects: cfg.MaxObjects, Now: time.Now}
	return series.New(shown, s), nil
}

// open opens the store. The caller closes it.
func (s *source) open() (zarr.Store, func(), error) {
	nothing := func() {}
	switch {
	case s.bucket != nil:
		return bucketStore{s.bucket}, nothing, nil
	case !s.cfg.Local():
		root, err := url.Parse(strings.TrimRight(s.cfg.Store, "/"))
		if err != nil {
			return nil, nil, errors.New("store cannot be read as an address")
		}
		return webStore{client: s.client, root: *root}, nothing, nil
	}
	files, err := openFiles(s.cfg.Store)
	if err != nil {
		return nil, nil, err
	}
	return files, func() { _ = files.Close() }, nil
}

// localStore is a folder or an open ZIP file.
type localStore struct {
	*zarr.Files
	file *os.File // nil: a folder
}

// Close closes both.
func (s localStore) Close() error {
	err := s.Files.Close()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

func openFiles(place string) (localStore, error) {
	info, err := os.Stat(place)
	if err != nil {
		return localStore{}, fmt.Errorf("store: %w", err)
	}
	if info.IsDir() {
		files, err := zarr.OpenFolder(place)
		return localStore{Files: files}, err
	}
	f, err := os.Open(place)
	if err != nil {
		return localStore{}, fmt.Errorf("store: %w", err)
	}
	files, err := zarr.OpenZip(f, info.Size())
	if err != nil {
		_ = f.Close()
		return localStore{}, fmt.Errorf("store %s: %w", place, err)
	}
	return localStore{Files: files, file: f}, nil
}

// webStore is a store on a web server.
type webStore struct {
	client *web.Client
	root   url.URL
}

// Get returns the bytes of a key.
func (s webStore) Get(ctx context.Context, key string, most int64) ([]byte, error) {
	if !fs.ValidPath(key) {
		return nil, fmt.Errorf("key %q leads out of the store", key)
	}
	u := s.root
	u.Path, u.RawPath = u.Path+"/"+key, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, forbidden(err)
	}
	defer resp.Body.Close()
	content, err := zarr.ReadAtMost(resp.Body, key, most)
	if err == nil && resp.ContentLength > int64(len(content)) {
		err = fmt.Errorf("%s: %w", key, io.ErrUnexpectedEOF)
	}
	return content, err
}

// forbidden explains a status that S3 has for two things. A chunk that may not
// be read must not pass for one that holds no observations.
func forbidden(err error) error {
	var status *web.StatusError
	if errors.As(err, &status) && status.Code == http.StatusForbidden {
		return fmt.Errorf("%w; a bucket that does not let one list it says so of chunks that are not there, too: give s3 with keys", err)
	}
	return err
}

// bucketStore is a store in a bucket.
type bucketStore struct{ bucket *s3.Archive }

// Get returns the bytes of a key.
func (s bucketStore) Get(ctx context.Context, key string, most int64) ([]byte, error) {
	if !fs.ValidPath(key) {
		return nil, fmt.Errorf("key %q leads out of the store", key)
	}
	r, err := s.bucket.Open(ctx, fetch.Object{Name: key, Size: -1}, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return zarr.ReadAtMost(r, key, most)
}
