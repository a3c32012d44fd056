// Package cmems is the archive that is a dataset of the Copernicus Marine
// Service: the catalogue says where a version of it lies, and the files are
// read from there without signature.
//
// The version is given, or chosen once and remembered in a file. It is never
// changed behind the operator's back: that a newer one exists, or that the one
// in use is to be retired, Notices tells. One of the two configuration hosts,
// one of the catalogues and the login service may be down without harm; a
// catalogue that was read before serves until another can be read. Only refused
// credentials stop the archive.
//
// Addresses from the catalogue are asked only over https and only on the hosts
// that the configuration allows, also after a redirect.
//
// Files keep the names and folders they have below the version's folder.
// Interim files of a reprocessed dataset lie beside the final ones and have
// their own names; ParseName tells them apart.
//
// Package cmems only reads, and knows nothing of the content of files.
package cmems

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/s3"
	"lacuna/fetch/web"
	"lacuna/internal/faults"
)

// Config names the dataset and the way to read it.
type Config struct {
	Dataset    string             `yaml:"dataset"`     // as in cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D
	Version    string             `yaml:"version"`     // as in 202311; empty: chosen once and kept in pin_file
	PinFile    string             `yaml:"pin_file"`    // remembers the version that was chosen
	Part       string             `yaml:"part"`        // part of the dataset, where it has several
	Login      bool               `yaml:"login"`       // check the credentials once a day
	User       string             `yaml:"user"`        // empty: as the Copernicus Marine toolbox finds it
	Password   fetch.SecretConfig `yaml:"password"`    // likewise
	Refresh    time.Duration      `yaml:"refresh"`     // age at which the catalogue is read again
	ConfigURLs []string           `yaml:"config_urls"` // addresses of the client configuration, tried in this order
	AuthURL    string             `yaml:"auth_url"`    // address of the realm that logins go to
	Hosts      []string           `yaml:"hosts"`       // hosts that may be asked beside those of config_urls and auth_url, over https; one without TLS is named with its scheme
	MaxObjects int                `yaml:"max_objects"` // a listing with more entries is cut and is an error
	Web        web.Config         `yaml:",inline"`
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Login:   true,
		Refresh: 6 * time.Hour, // versions change a few times a year, with weeks of overlap
		ConfigURLs: []string{
			"https://s3.waw3-1.cloudferro.com/mdl-metadata/clientsConfigV1.json",
			"https://stac.marine.copernicus.eu/clients-config-v1",
		},
		AuthURL: "https://auth.marine.copernicus.eu/realms/MIS",
		// The hosts that the service tells its users to open their firewalls for.
		Hosts: []string{
			"auth.marine.copernicus.eu", "stac.marine.copernicus.eu", "s3.waw3-1.cloudferro.com", "s3.waw4-1.cloudferro.com",
		},
		MaxObjects: s3.DefaultConfig().MaxObjects,
		Web:        web.DefaultConfig(),
	}
}

// versionLabel is the form of a version: a year and a month, or the word that
// stands for a dataset without versions.
var versionLabel = regexp.MustCompile(`^([12]\d{3}(0[1-9]|1[0-2])|default)$`)

// Validate reports everything wrong with c; messages begin with the key.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(c.Dataset != "", "dataset is empty")
	errs.Check(c.Version == "" || versionLabel.MatchString(c.Version), "version is %q, must be like 202311", c.Version)
	errs.Check(c.Version != "" || c.PinFile != "", "version and pin_file are empty; give one, or a restart could change the version")
	errs.Check(c.Refresh > 0, "refresh is %v, must be positive", c.Refresh)
	errs.Check(len(c.ConfigURLs) > 0, "config_urls is empty")
	for _, text := range c.ConfigURLs {
		errs.Check(isURL(text), "config_urls has an entry that is no http or https address")
	}
	errs.Check(!c.Login || isURL(c.AuthURL), "auth_url is no http or https address")
	for _, host := range c.Hosts {
		errs.Check(isURL(origin(host)) && !strings.ContainsAny(host, "@? \n"), "hosts has %q, must be a host, a host:port, or http://host:port", host)
	}
	errs.Check(c.MaxObjects > 0, "max_objects is %d, must be positive", c.MaxObjects)
	errs.Check(c.Password.IsZero() || c.User != "", "user is empty, though there is a password")
	if err := c.Password.Validate(); err != nil {
		errs.Add(fmt.Errorf("password: %w", err))
	}
	errs.Add(c.Web.Validate())
	return errs.Err()
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil
}

// Archive is a version of a dataset.
type Archive struct {
	cfg        Config
	politeness fetch.Politeness
	client     *web.Client

	turn    chan struct{} // its holder may use the fields below, also while asking hosts: one caller reads the catalogue for all
	current *location
	user    string // name of the user at the login service
	checked time.Time
	authErr error // why the last login check got no answer
}

// location holds the places of the version in use, by the last reading of the
// catalogue.
type location struct {
	read     time.Time
	versions []Version
	version  string
	failures []string      // hosts that did not answer
	places   []*s3.Archive // archives that hold the version; the one in use comes first
}

// New returns the archive of cfg. It checks cfg and touches neither the network
// nor the disk.
func New(cfg Config, politeness fetch.Politeness) (*Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cmems config: %w", err)
	}
	cfg.Web.Allow = cfg.allows
	return &Archive{cfg: cfg, politeness: politeness, client: web.New(cfg.Web, politeness), turn: make(chan struct{}, 1)}, nil
}

// List returns the files of the version in use. A place that is gone makes it
// read the catalogue again, once.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	if err := a.login(ctx); err != nil {
		return nil, err
	}
	objects, err := a.list(ctx, scope)
	if !errors.Is(err, fs.ErrNotExist) {
		return objects, err
	}
	if err := a.outdate(ctx); err != nil {
		return nil, err
	}
	return a.list(ctx, scope)
}

func (a *Archive) list(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	at, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, place := range at.places {
		objects, err := place.List(ctx, scope)
		if err == nil {
			return objects, a.prefer(ctx, place)
		}
		if ctx.Err() != nil {
			return objects, ctx.Err()
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("list %s version %s: %w", a.cfg.Dataset, at.version, errors.Join(errs...))
}

// Open returns the bytes of o from offset on, from the place that was listed.
func (a *Archive) Open(ctx context.Context, o fetch.Object, offset int64) (io.ReadCloser, error) {
	at, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	return at.places[0].Open(ctx, o, offset)
}

// prefer puts the place that answered first: tags of another place may differ,
// and would make every object look changed.
func (a *Archive) prefer(ctx context.Context, place *s3.Archive) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer a.leave()
	if i := slices.Index(a.current.places, place); i > 0 {
		a.current.places[0], a.current.places[i] = place, a.current.places[0]
	}
	return nil
}

func (a *Archive) enter(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Archive) leave() { <-a.turn }

// Version returns the version in use.
func (a *Archive) Version(ctx context.Context) (string, error) {
	at, err := a.locate(ctx)
	if err != nil {
		return "", err
	}
	return at.version, nil
}

// Notices returns the news of the dataset for the operator: new or announced
// versions, the retirement of the one in use, and hosts that do not answer. A
// notice that still holds is returned each time; notices can be compared, so
// that a caller can announce each of them once.
func (a *Archive) Notices(ctx context.Context) ([]Notice, error) {
	at, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	found := notices(a.cfg.Dataset, at.version, at.versions, time.Now())
	for _, host := range at.failures {
		found = append(found, Notice{Kind: Degraded, Dataset: a.cfg.Dataset, Text: host + " does not answer; the others are used"})
	}
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	defer a.leave()
	if a.authErr != nil {
		found = append(found, Notice{Kind: Degraded, Dataset: a.cfg.Dataset, Text: "the login service does not answer; files are read without it"})
	}
	return found, nil
}

// outdate makes the next call read the catalogue.
func (a *Archive) outdate(ctx context.Context) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer a.leave()
	if a.current != nil {
		a.current.read = time.Time{}
	}
	return nil
}

// tryAgain is the pause after a catalogue could not be read.
const tryAgain = 10 * time.Minute

// locate returns the places of the version in use, from the catalogue or, while
// that cannot be read, from its last reading. The caller owns the answer.
func (a *Archive) locate(ctx context.Context) (location, error) {
	if err := a.enter(ctx); err != nil {
		return location{}, err
	}
	defer a.leave()
	if a.current == nil || time.Since(a.current.read) >= a.cfg.Refresh {
		at, err := a.resolve(ctx)
		switch {
		case err == nil:
			a.current = at
		case a.current == nil || errors.Is(err, fetch.ErrPermanent) || ctx.Err() != nil:
			return location{}, err
		default:
			a.current.failures = []string{"the catalogue"}
			a.current.read = time.Now().Add(min(tryAgain, a.cfg.Refresh) - a.cfg.Refresh)
		}
	}
	at := *a.current
	at.places = slices.Clone(at.places)
	return at, nil
}
