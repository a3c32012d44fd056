// Package erddap is the archive that is a gridded dataset of an ERDDAP server:
// every time of it is an object.
//
// The server is spoken to in OPeNDAP (DAP 2), as its griddap offers it: the
// attributes and the time axis at a listing, and for an object the variables of
// one time in the box that is wanted, in one request. Files that ERDDAP makes
// would carry the time of the request; those that package series makes of the
// numbers do not.
//
// Package erddap only reads, knows nothing of tables (tabledap), and takes of
// any axis that is neither time, latitude nor longitude the first place.
package erddap

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/series"
	"lacuna/fetch/web"
	"lacuna/internal/bbox"
	"lacuna/internal/faults"
)

// Config is the place of the dataset and what is wanted of it.
type Config struct {
	URL        string        `yaml:"url"`         // address of the server, up to /erddap
	Dataset    string        `yaml:"dataset"`     // id of the gridded dataset
	Variables  []string      `yaml:"variables"`   // variables to fetch, on one grid
	Reread     time.Duration `yaml:"reread"`      // maps younger than this are read again once a day, for the server does not tell when one changes
	MaxMiB     int           `yaml:"max_mib"`     // largest map that is asked for
	MaxObjects int           `yaml:"max_objects"` // a listing with more times is cut and is an error
	Web        web.Config    `yaml:",inline"`
	Box        bbox.Box      `yaml:"-"` // the part of the grid that is fetched
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	w := web.DefaultConfig()
	w.Timeout = 5 * time.Minute // a server opens many files before it begins to answer
	return Config{
		Variables:  []string{},
		Reread:     10 * 24 * time.Hour, // near-real-time days are replaced within a week or so
		MaxMiB:     512,                 // three variables of an ocean basin at 1 km
		MaxObjects: 200_000,             // more than a century of 4 maps a day
		Web:        w,
	}
}

// id matches the ids of datasets and the names of variables.
var id = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func (c Config) root() (url.URL, error) {
	return web.Root(c.URL, "https://coastwatch.pfeg.noaa.gov/erddap", "give the address up to /erddap")
}

// Validate reports everything wrong with c; messages begin with the key.
func (c Config) Validate() error {
	var errs faults.List
	_, err := c.root()
	errs.Check(err == nil, "url %w", err)
	errs.Check(id.MatchString(c.Dataset), "dataset is %q, must be the id of a gridded dataset like erdMH1chla1day", c.Dataset)
	errs.Check(len(c.Variables) > 0, "variables is empty: name the variables to fetch")
	for _, v := range c.Variables {
		errs.Check(id.MatchString(v), "variables has %q, must be names like chlorophyll", v)
	}
	errs.Check(c.Reread >= 0, "reread is %v, must not be negative", c.Reread)
	errs.Check(c.MaxMiB > 0 && c.MaxMiB <= 2048, "max_mib is %d, must be 1..2048, for no ERDDAP sends more", c.MaxMiB)
	errs.Check(c.MaxObjects > 0, "max_objects is %d, must be positive", c.MaxObjects)
	errs.Add(c.Web.Validate())
	return errs.Err()
}

// source is the dataset as a series of maps.
type source struct {
	cfg    Config
	root   url.URL // griddap/ID, without an ending
	client *web.Client

	mu   sync.Mutex // guards grid
	grid *grid      // as it was surveyed last; nil: not yet
}

// New returns the archive of cfg. It checks cfg and touches neither the network
// nor the disk.
func New(cfg Config, politeness fetch.Politeness) (*series.Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("erddap config: %w", err)
	}
	root, err := cfg.root()
	if err != nil {
		return nil, fmt.Errorf("erddap config: url %w", err)
	}
	root.Path = strings.TrimSuffix(root.Path, "/griddap") + "/griddap/" + cfg.Dataset
	s := &source{cfg: cfg, root: root, client: web.New(cfg.Web, politeness)}
	shown := series.Config{Name: cfg.Dataset, Reread: cfg.Reread, MaxObjects: cfg.MaxObjects, Now: time.Now}
	return series.New(shown, s), nil
}

// get asks for a document of the dataset, with a constraint.
func (s *source) get(ctx context.Context, ending, constraint string, most int64) ([]byte, error) {
	u := s.root
	u.Path += ending
	u.RawQuery = url.QueryEscape(constraint) // brackets too: servers refuse bare ones
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, explain(err)
	}
	defer resp.Body.Close()
	what := "GET " + web.Shown(&u)
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%s: %w: the answer has more than %d bytes, which is more than was asked for", what, fetch.ErrUnacceptable, most)
	case resp.ContentLength > int64(len(text)):
		return nil, fmt.Errorf("%s: %w", what, io.ErrUnexpectedEOF)
	}
	if err := refusal(text); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return text, nil
}

// coordinate returns the index of the axis of dims that is called one of names;
// -1: none is.
func coordinate(dims []string, names ...string) int {
	return slices.IndexFunc(dims, func(d string) bool { return slices.Contains(names, strings.ToLower(d)) })
}
