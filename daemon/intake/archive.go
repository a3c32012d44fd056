package intake

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"lacuna/daemon/state"
	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/fetch/dir"
	"lacuna/fetch/erddap"
	"lacuna/fetch/ftp"
	"lacuna/fetch/http"
	"lacuna/fetch/s3"
	"lacuna/fetch/stac"
	"lacuna/fetch/zarr"
	"lacuna/internal/bbox"
	"lacuna/internal/convert"
	"lacuna/internal/faults"
)

// Archive is the place where the granules of a dataset appear, with the schedule
// of its watcher.
type Archive struct {
	Type         string        `yaml:"type"` // dir, s3, ftp, http, cmems, stac, erddap or zarr: the section that is used
	Dir          string        `yaml:"dir"`
	DirMax       int           `yaml:"dir_max_objects"` // a listing of dir with more entries is cut and is an error
	S3           s3.Config     `yaml:"s3"`
	FTP          ftp.Config    `yaml:"ftp"`
	HTTP         http.Config   `yaml:"http"`
	CMEMS        cmems.Config  `yaml:"cmems"`
	STAC         stac.Config   `yaml:"stac"`
	ERDDAP       erddap.Config `yaml:"erddap"`
	Zarr         zarr.Config   `yaml:"zarr"`
	fetch.Config `yaml:",inline"`
}

// DefaultArchive returns the settings of an archive that a file does not give.
func DefaultArchive() Archive {
	return Archive{
		Type: "dir", DirMax: dir.DefaultMaxObjects, S3: s3.DefaultConfig(), FTP: ftp.DefaultConfig(), HTTP: http.DefaultConfig(), CMEMS: cmems.DefaultConfig(),
		STAC: stac.DefaultConfig(), ERDDAP: erddap.DefaultConfig(), Zarr: zarr.DefaultConfig(),
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

	local   func(a Archive) bool // on this machine, so that requests need no pacing; nil: never
	readers func(a Archive) int  // largest number of open readers; nil: no limit
}

// Line is a line of a proposed configuration, inside the section of the archive.
// Indent is in steps.
type Line struct {
	Indent    int
	Key, Text string // the text is quoted where YAML needs it
	Why       string
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
	return k != nil && k.local != nil && k.local(a)
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
// the scheme http, https, ftp or s3 (s3://HOST/BUCKET/PREFIX), a dataset of
// Copernicus Marine, of an ERDDAP server (.../griddap/ID?VARIABLE), a collection
// of a STAC API (.../collections/ID), or a Zarr store (.../NAME.zarr?VARIABLE).
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

// within returns the archive cut to a box, as far as its kind can.
func (a Archive) within(box bbox.Box) Archive {
	a.STAC.Box, a.ERDDAP.Box, a.Zarr.Box = box, box, box
	return a
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
