// Package stac is the archive behind a STAC API, such as NASA's CMR: the items
// of collections, found by search, one asset of each.
//
// A search is asked for the days and the box that are wanted, and its pages are
// followed. An object has the name of its item, with the ending of the asset;
// its size, time and checksum are those of the item where it has them, and else
// the host of the asset is asked once. Credentials go to the API and to hosts
// that the settings or .netrc name, and to no other.
//
// Package stac only reads, and knows nothing of the content of assets.
package stac

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"lacuna/fetch"
	"lacuna/fetch/web"
	"lacuna/internal/bbox"
	"lacuna/internal/faults"
)

// Config is the place of the API and the items that are wanted.
type Config struct {
	URL         string             `yaml:"url"`         // landing page of the API
	Collections []string           `yaml:"collections"` // ids of the collections that are searched
	Asset       string             `yaml:"asset"`       // key of the asset; empty: the one that is NetCDF
	Token       fetch.SecretConfig `yaml:"token"`       // bearer token
	Hosts       []string           `yaml:"hosts"`       // hosts that assets and redirects may lead to, over https; *.example.org is all below it
	TokenHosts  []string           `yaml:"token_hosts"` // hosts of assets that get the token too, beside the API
	Netrc       string             `yaml:"netrc"`       // file with user and password of each host, instead of a token
	PageSize    int                `yaml:"page_size"`   // items that are asked for at a time
	MaxObjects  int                `yaml:"max_objects"` // a listing with more items is cut and is an error
	Web         web.Config         `yaml:",inline"`
	Box         bbox.Box           `yaml:"-"` // items outside of it are left out
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Collections: []string{},
		Hosts:       []string{},
		TokenHosts:  []string{},
		PageSize:    100,     // more than some APIs give at once; the pages are followed
		MaxObjects:  200_000, // sixty years of nine items a day; more means a wrong collection
		Web:         web.DefaultConfig(),
	}
}

func (c Config) root() (url.URL, error) {
	return web.Root(c.URL, "https://cmr.earthdata.nasa.gov/stac/POCLOUD", "give token or netrc")
}

// Validate reports everything wrong with c; messages begin with the key.
func (c Config) Validate() error {
	var errs faults.List
	_, err := c.root()
	errs.Check(err == nil, "url %w", err)
	errs.Check(len(c.Collections) > 0, "collections is empty: name the collections to search")
	errs.Check(c.Token.IsZero() || c.Netrc == "", "token excludes netrc")
	errs.Check(len(c.TokenHosts) == 0 || !c.Token.IsZero(), "token_hosts names hosts, and there is no token")
	for _, host := range c.TokenHosts {
		errs.Check(isHost(host) && !strings.HasPrefix(host, "*"), "token_hosts has %q, must be a host like data.example.org", host)
	}
	for _, host := range c.Hosts {
		errs.Check(isHost(host), "hosts has %q, must be a host like data.example.org or *.example.org", host)
	}
	errs.Check(c.PageSize >= 1 && c.PageSize <= 10_000, "page_size is %d, must be 1..10000", c.PageSize)
	errs.Check(c.MaxObjects > 0, "max_objects is %d, must be positive", c.MaxObjects)
	if err := c.Token.Validate(); err != nil {
		errs.Add(fmt.Errorf("token: %w", err))
	}
	errs.Add(c.Web.Validate())
	return errs.Err()
}

// Archive is the assets of a search.
type Archive struct {
	cfg    Config
	root   url.URL // ends without a slash
	client *web.Client

	mu    sync.Mutex // guards known
	known map[string]sighting
}

// sighting is an item as it was listed, with the address of its asset.
type sighting struct {
	stamp  string // tells versions of the item apart
	href   *url.URL
	object fetch.Object
	asked  bool // the host of the asset described it
}

// New returns the archive of cfg. It checks cfg and touches neither the network
// nor the disk.
func New(cfg Config, politeness fetch.Politeness) (*Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("stac config: %w", err)
	}
	root, err := cfg.root()
	if err != nil {
		return nil, fmt.Errorf("stac config: url %w", err)
	}
	a := &Archive{cfg: cfg, root: root, known: map[string]sighting{}}
	cfg.Web.Allow = a.allows
	if cfg.Netrc != "" { // a login may lie between an asset and its bytes
		cfg.Web.Login = a.login
	}
	a.client = web.New(cfg.Web, politeness)
	return a, nil
}

// login adds the credentials of .netrc to a request that was sent on.
func (a *Archive) login(req *http.Request) {
	if auth, err := a.auth(); err == nil {
		auth.sign(req)
	}
}

// List returns the assets of the items that the search finds.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	auth, err := a.auth()
	if err != nil {
		return nil, err
	}
	l := &listing{archive: a, auth: auth, scope: scope, bound: scope.Bound("max_objects", a.cfg.MaxObjects), found: map[string]sighting{}}
	err = l.search(ctx)
	objects, incomplete := l.describe(ctx)
	err = errors.Join(l.unread.Err(), err, incomplete)
	if ctx.Err() != nil {
		return objects, ctx.Err()
	}
	a.remember(l.found, err == nil && len(scope.Prefixes) == 0 && scope.Since.IsZero())
	return objects, err
}

// remember keeps the addresses of what was listed, for Open. After a listing of
// everything, nothing else is kept.
func (a *Archive) remember(found map[string]sighting, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if all || len(a.known) > 2*a.cfg.MaxObjects {
		clear(a.known)
	}
	for name, s := range found {
		a.known[name] = s
	}
}

// Open returns the bytes of o from offset on.
func (a *Archive) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	a.mu.Lock()
	seen, ok := a.known[o.Name]
	a.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("open %q: the last search did not find it: %w", o.Name, fs.ErrNotExist)
	}
	auth, err := a.auth()
	if err != nil {
		return nil, err
	}
	get := web.Get{URL: seen.href, Object: o, Offset: offset, Sign: auth.signed, Secrets: auth.secrets()}
	if !seen.asked {
		get.Object.ETag = "" // that of the item; the host of the asset knows another
	}
	src, err := a.client.Open(ctx, get)
	if err != nil {
		a.forget(o.Name)
		return nil, err
	}
	return src, nil
}

// forget makes the next listing ask the host about an asset again.
func (a *Archive) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.known[name]; ok {
		s.stamp = ""
		a.known[name] = s
	}
}
