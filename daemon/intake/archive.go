package intake

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"lacuna/daemon/state"
	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/fetch/dir"
	"lacuna/fetch/ftp"
	"lacuna/fetch/http"
	"lacuna/fetch/s3"
	"lacuna/internal/convert"
	"lacuna/internal/faults"
)

// Archive is the place where the granules of a dataset appear, with the schedule
// of its watcher.
type Archive struct {
	Type         string       `yaml:"type"` // dir, s3, ftp, http or cmems: the section that is used
	Dir          string       `yaml:"dir"`
	DirMax       int          `yaml:"dir_max_objects"` // a listing of dir with more entries is cut and is an error
	S3           s3.Config    `yaml:"s3"`
	FTP          ftp.Config   `yaml:"ftp"`
	HTTP         http.Config  `yaml:"http"`
	CMEMS        cmems.Config `yaml:"cmems"`
	fetch.Config `yaml:",inline"`
}

// DefaultArchive returns the settings of an archive that a file does not give.
func DefaultArchive() Archive {
	return Archive{
		Type: "dir", DirMax: dir.DefaultMaxObjects, S3: s3.DefaultConfig(), FTP: ftp.DefaultConfig(), HTTP: http.DefaultConfig(), CMEMS: cmems.DefaultConfig(),
		Config: fetch.DefaultConfig(),
	}
}

// kind is one kind of archive, with everything that depends on it.
type kind struct {
	name    string // value of the key type, and name of the section with its own keys
	example string // an address of the kind
	// validate reports everything wrong with the keys of the kind.
	validate func(a Archive) error
	place    func(a Archive) string // the address, for people
	// open makes the archive. remembers is a file for its choices, if it makes any.
	open func(a Archive, polite fetch.Politeness, remembers string) (fetch.Archive, error)
	// at reports whether an address that a user has given is of this kind, and
	// writes it into a if so.
	at func(a *Archive, place string, u *url.URL) (bool, error)
	// propose returns the lines of a proposed configuration.
	propose func(a Archive) []Line

	local   bool                // on this machine, so that requests need no pacing
	readers func(a Archive) int // largest number of open readers; nil: no limit
}

// Line is a line of a proposed configuration, inside the section of the archive.
// Indent is in steps.
type Line struct {
	Indent    int
	Key, Text string // the text is quoted where YAML needs it
	Why       string
}

// byAddress is the reason for a type that follows from the address.
const byAddress = "by the address that was given"

// cmemsDataset matches the names of observation datasets of Copernicus Marine.
var cmemsDataset = regexp.MustCompile(`^cmems_obs-[a-z]+_[a-z]+_[A-Za-z0-9_-]+$`)

// kinds are the kinds of archives. An address belongs to the first kind that
// accepts it; an address without a scheme is a folder.
var kinds = []kind{
	{
		name:     "s3",
		example:  "s3://s3.example.org/bucket/some/prefix",
		validate: func(a Archive) error { return a.S3.Validate() },
		place:    func(a Archive) string { return a.S3.Endpoint + "/" + a.S3.Bucket },
		open: func(a Archive, polite fetch.Politeness, _ string) (fetch.Archive, error) {
			return s3.New(a.S3, polite)
		},
		at: func(a *Archive, place string, u *url.URL) (bool, error) {
			if u.Scheme != "s3" {
				return false, nil
			}
			bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
			if bucket == "" {
				return true, fmt.Errorf("%s names no bucket: write s3://HOST/BUCKET/PREFIX", place)
			}
			a.S3.Endpoint, a.S3.Bucket, a.S3.Prefix = "https://"+u.Host, bucket, prefix
			return true, nil
		},
		propose: func(a Archive) []Line {
			return []Line{
				{0, "type", "s3", byAddress},
				{0, "s3", "", ""},
				{1, "endpoint", a.S3.Endpoint, "the host"},
				{1, "bucket", a.S3.Bucket, "the first part of the path; keys, if it needs any, go into access_key and secret_key"},
				{1, "prefix", a.S3.Prefix, "the rest of the path"},
			}
		},
	},
	{
		name:     "ftp",
		example:  "ftp://ftp.example.org/pub/chl",
		validate: func(a Archive) error { return a.FTP.Validate() },
		place:    func(a Archive) string { return "ftp " + a.FTP.Address },
		open: func(a Archive, polite fetch.Politeness, _ string) (fetch.Archive, error) {
			return ftp.New(a.FTP, polite)
		},
		at: func(a *Archive, _ string, u *url.URL) (bool, error) {
			if u.Scheme != "ftp" {
				return false, nil
			}
			a.FTP.Address, a.FTP.Root = u.Host, path.Join("/", u.Path)
			return true, nil
		},
		propose: func(a Archive) []Line {
			return []Line{
				{0, "type", "ftp", byAddress},
				{0, "ftp", "", ""},
				{1, "address", a.FTP.Address, "the host; user and password, if it needs any, go beside it"},
				{1, "root", a.FTP.Root, "the folder"},
			}
		},
		readers: func(a Archive) int { return a.FTP.Connections },
	},
	{
		name:     "http",
		example:  "https://data.example.org/chl/",
		validate: func(a Archive) error { return a.HTTP.Validate() },
		place:    func(a Archive) string { return a.HTTP.URL },
		open: func(a Archive, polite fetch.Politeness, _ string) (fetch.Archive, error) {
			return http.New(a.HTTP, polite)
		},
		at: func(a *Archive, place string, u *url.URL) (bool, error) {
			a.HTTP.URL = place
			return u.Scheme == "http" || u.Scheme == "https", nil
		},
		propose: func(a Archive) []Line {
			return []Line{
				{0, "type", "http", byAddress},
				{0, "http", "", ""},
				{1, "url", a.HTTP.URL, "its index pages are read; name a manifest if there is one"},
			}
		},
	},
	{
		name:     "cmems",
		example:  "cmems_obs-oc_blk_bgc-plankton_nrt_l3-multi-1km_P1D",
		validate: func(a Archive) error { return pinned(a.CMEMS, "state_dir").Validate() },
		place:    func(a Archive) string { return "Copernicus Marine " + a.CMEMS.Dataset },
		open: func(a Archive, polite fetch.Politeness, remembers string) (fetch.Archive, error) {
			return cmems.New(pinned(a.CMEMS, remembers), polite)
		},
		at: func(a *Archive, place string, _ *url.URL) (bool, error) {
			if !cmemsDataset.MatchString(place) {
				return false, nil
			}
			a.CMEMS.Dataset = place
			return true, nil
		},
		propose: func(a Archive) []Line {
			return []Line{
				{0, "type", "cmems", "the dataset is one of Copernicus Marine"},
				{0, "cmems", "", ""},
				{1, "dataset", a.CMEMS.Dataset, "its version is chosen at the first listing, kept, and never changed silently; user and password are found as the Copernicus Marine toolbox finds them"},
				{0, "lookback", "960h", "the last 40 days to begin with; lacuna backfill fetches older ones"},
			}
		},
	},
	{
		name:    "dir",
		example: "archive",
		validate: func(a Archive) error {
			var errs faults.List
			errs.Check(a.Dir != "", "dir is empty: name the folder where granules appear")
			errs.Check(a.DirMax >= 1, "dir_max_objects is %d, must be positive", a.DirMax)
			return errs.Err()
		},
		place: func(a Archive) string { return a.Dir },
		open: func(a Archive, _ fetch.Politeness, _ string) (fetch.Archive, error) {
			return dir.New(a.Dir, a.DirMax), nil
		},
		at: func(a *Archive, place string, u *url.URL) (_ bool, err error) {
			if u.Scheme != "" && u.Host != "" {
				return false, nil
			}
			a.Dir, err = filepath.Abs(place)
			return true, err
		},
		propose: func(a Archive) []Line {
			return []Line{
				{0, "dir", a.Dir, "granules are taken up as they appear here; the folder is only read"},
				{0, "poll_interval", "1m", "a folder costs nothing to list"},
				{0, "settle", "30s", "a file that was written to less than this ago is left alone, so that none is read half"},
			}
		},
		local: true,
	},
}

// Kinds lists the kinds of archives, for people.
func Kinds() string {
	names := convert.Each(kinds, func(k kind) string { return k.name })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Examples returns an address of every kind of archive.
func Examples() []string { return convert.Each(kinds, func(k kind) string { return k.example }) }

// kind returns the kind of a; nil where no kind has that name.
func (a Archive) kind() *kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == a.Type })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// Validate reports everything wrong with a. Only the section of its own kind is
// checked.
func (a Archive) Validate() error {
	var errs faults.List
	switch k := a.kind(); {
	case k == nil:
		errs.Check(false, "type is %q, must be %s", a.Type, Kinds())
	case k.name == "dir": // has no section
		errs.Add(k.validate(a))
	default:
		errs.Add(faults.In(k.name, k.validate(a)))
	}
	watch := a.Config
	watch.Name = "archive" // a placeholder: the dataset's name comes later
	errs.Add(watch.Validate())
	return errs.Err()
}

// Place returns the address of the archive, for people.
func (a Archive) Place() string {
	if k := a.kind(); k != nil {
		return k.place(a)
	}
	return a.Type
}

// Local reports whether the archive is on this machine.
func (a Archive) Local() bool {
	k := a.kind()
	return k != nil && k.local
}

// Propose returns the lines of a configuration that name the archive, with their
// reasons.
func (a Archive) Propose() []Line {
	if k := a.kind(); k != nil {
		return k.propose(a)
	}
	return nil
}

// At returns the archive at a place that a user names: a folder, an address with
// the scheme http, https, ftp or s3 (s3://HOST/BUCKET/PREFIX), or a dataset of
// Copernicus Marine.
func At(place string) (Archive, error) {
	u, err := url.Parse(place)
	if err != nil {
		u = &url.URL{} // a folder may have any name
	}
	for _, k := range kinds {
		a := DefaultArchive()
		if taken, err := k.at(&a, place, u); taken {
			a.Type = k.name
			return a, err
		}
	}
	return DefaultArchive(), fmt.Errorf("%s is neither a folder nor an address with the scheme http, https, ftp or s3", place)
}

// bare returns the archive of a dataset, without pacing and retries.
func (a Archive) bare(polite fetch.Politeness, dir state.Dir, dataset string) (fetch.Archive, error) {
	k := a.kind()
	if k == nil {
		return nil, fmt.Errorf("there is no archive of type %q", a.Type)
	}
	return k.open(a, polite, dir.Version(dataset))
}

// pinned returns cfg with file as the memory of the chosen version, unless the
// configuration names another.
func pinned(cfg cmems.Config, file string) cmems.Config {
	if cfg.PinFile == "" {
		cfg.PinFile = file
	}
	return cfg
}
