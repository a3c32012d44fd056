// Package http is the archive that is a folder on a web server, shown by its
// index pages or by a manifest.
//
// An index page, as Apache and nginx make it, tells little of a file, so each
// row that is new or looks different is asked about once. A manifest is a file
// with a line for each object: a name, or a checksum and a name, or a JSON
// object. Only files below the root, on the same host, are ever listed or read.
// A download names the version that was listed, so that a file replaced
// meanwhile is noticed and a broken download goes on where it stopped.
//
// Package http only reads, and knows nothing of the content of files.
package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/web"
	"lacuna/internal/faults"
)

// Config is the place of the folder and the way to reach it.
type Config struct {
	URL        string             `yaml:"url"`         // address of the folder
	Manifest   string             `yaml:"manifest"`    // path of the manifest below it; empty: index pages are read
	User       string             `yaml:"user"`        // user of a basic authorization
	Password   fetch.SecretConfig `yaml:"password"`    // password of user
	Token      fetch.SecretConfig `yaml:"token"`       // bearer token, instead of user and password
	Depth      int                `yaml:"depth"`       // folders below the root that are listed
	MaxObjects int                `yaml:"max_objects"` // a listing with more entries is cut and is an error
	Web        web.Config         `yaml:",inline"`
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Depth:      6,       // mission, product, year, month or day of year, with one to spare
		MaxObjects: 200_000, // sixty years of nine products a day; more means a wrong root
		Web:        web.DefaultConfig(),
	}
}

func (c Config) root() (url.URL, error) {
	return web.Root(c.URL, "https://data.example.org/sst/", "give user, password or token")
}

// Validate reports everything wrong with c; messages begin with the key.
func (c Config) Validate() error {
	var errs faults.List
	_, err := c.root()
	errs.Check(err == nil, "url %w", err)
	errs.Check(!strings.HasPrefix(c.Manifest, "/") && !climbs(c.Manifest), "manifest is %q, must be a path below url", c.Manifest)
	errs.Check(c.Token.IsZero() || c.User == "" && c.Password.IsZero(), "token excludes user and password")
	errs.Check(c.Password.IsZero() || c.User != "", "user is empty, though there is a password")
	errs.Check(c.Depth >= 0, "depth is %d, must not be negative", c.Depth)
	errs.Check(c.MaxObjects > 0, "max_objects is %d, must be positive", c.MaxObjects)
	for _, secret := range []struct {
		key string
		err error
	}{{"password", c.Password.Validate()}, {"token", c.Token.Validate()}} {
		errs.Check(secret.err == nil, "%s: %w", secret.key, secret.err)
	}
	errs.Add(c.Web.Validate())
	return errs.Err()
}

// climbs reports whether a path has a part that leads upwards.
func climbs(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." || part == "." {
			return true
		}
	}
	return false
}

// Archive is a folder on a web server.
type Archive struct {
	cfg    Config
	root   url.URL // ends in a slash
	client *web.Client
	mu     sync.Mutex          // guards known
	known  map[string]sighting // answers of the host, by name
}

// sighting is a row and the answer of the host about its object.
type sighting struct {
	row    string
	object fetch.Object
}

// New returns the archive of cfg. It checks cfg and touches neither the network
// nor the disk.
func New(cfg Config, politeness fetch.Politeness) (*Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("http config: %w", err)
	}
	root, err := cfg.root()
	if err != nil {
		return nil, fmt.Errorf("http config: url %w", err)
	}
	root.Path += "/"
	return &Archive{cfg: cfg, root: root, client: web.New(cfg.Web, politeness), known: map[string]sighting{}}, nil
}

// List returns the files below the root. Folders that cannot be read make it an
// error, beside the files of the others.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	auth, err := a.auth()
	if err != nil {
		return nil, err
	}
	l := &listing{archive: a, auth: auth, scope: scope, bound: scope.Bound("max_objects", a.cfg.MaxObjects)}
	if a.cfg.Manifest != "" {
		err = l.manifest(ctx)
	} else {
		err = l.folder(ctx, "", 0)
	}
	err = errors.Join(l.unread.Err(), err, l.ask(ctx))
	if ctx.Err() != nil {
		return l.objects, ctx.Err()
	}
	a.prune(l.names, err == nil && len(scope.Prefixes) == 0)
	return l.objects, err
}

// prune forgets the sightings of all other names: after a listing of the whole
// archive, or where there are more than an archive may hold.
func (a *Archive) prune(names map[string]bool, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !all && len(a.known) <= 2*a.cfg.MaxObjects {
		return
	}
	maps.DeleteFunc(a.known, func(name string, _ sighting) bool { return !names[name] })
}

// Open returns the bytes of o from offset on.
func (a *Archive) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	if climbs(o.Name) {
		return nil, fmt.Errorf("open %q: it leads out of the folder", o.Name)
	}
	auth, err := a.auth()
	if err != nil {
		return nil, err
	}
	get := web.Get{URL: a.at(o.Name), Object: o, Offset: offset, Sign: auth.sign, Secrets: auth.secrets()}
	if a.cfg.Manifest != "" && (o.ETag == "" || strings.HasPrefix(o.ETag, sha256Tag)) {
		get.Object.ETag, get.Object.ModTime = "", time.Time{} // the host knows neither
	}
	src, err := a.client.Open(ctx, get)
	if err != nil {
		a.forget(o.Name)
		return nil, err
	}
	return &forgettingReader{ReadCloser: src, forget: func() { a.forget(o.Name) }}, nil
}

// at returns the URL of an object or folder below the root.
func (a *Archive) at(name string) *url.URL {
	u := a.root
	u.Path += name
	return &u
}

// forget makes the next listing ask about a name again: the file changed and
// its row did not.
func (a *Archive) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, name)
}

// auth holds the credentials of requests.
type auth struct {
	user            string
	password, token fetch.Secret
}

// auth reads the secrets anew, for they may have been changed.
func (a *Archive) auth() (auth, error) {
	password, err := a.cfg.Password.Load()
	if err != nil {
		return auth{}, fmt.Errorf("%w: password: %w", fetch.ErrPermanent, err)
	}
	token, err := a.cfg.Token.Load()
	if err != nil {
		return auth{}, fmt.Errorf("%w: token: %w", fetch.ErrPermanent, err)
	}
	return auth{user: a.cfg.User, password: password, token: token}, nil
}

func (a auth) sign(req *http.Request) error {
	switch {
	case a.token != "":
		req.Header.Set("Authorization", "Bearer "+a.token.Reveal())
	case a.user != "":
		req.SetBasicAuth(a.user, a.password.Reveal())
	}
	return nil
}

// secrets are the secrets, and their form in a basic authorization.
func (a auth) secrets() []fetch.Secret {
	if a.password == "" {
		return []fetch.Secret{a.token}
	}
	return []fetch.Secret{a.token, a.password, fetch.Secret(a.user+":") + a.password}
}
