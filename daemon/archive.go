package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"lacuna/daemon/version"
	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/fetch/dir"
	"lacuna/fetch/ftp"
	"lacuna/fetch/http"
	"lacuna/fetch/s3"
)

// Archive is where the granules of a dataset appear, and how it is watched.
type Archive struct {
	Type         string       `yaml:"type"` // dir, s3, ftp, http or cmems: which of the following counts
	Dir          string       `yaml:"dir"`
	DirMax       int          `yaml:"dir_max_objects"` // a listing of dir with more entries is cut and is an error
	S3           s3.Config    `yaml:"s3"`
	FTP          ftp.Config   `yaml:"ftp"`
	HTTP         http.Config  `yaml:"http"`
	CMEMS        cmems.Config `yaml:"cmems"`
	fetch.Config `yaml:",inline"`
}

// defaultArchive returns the settings of an archive that a file does not give.
func defaultArchive() Archive {
	return Archive{
		Type: "dir", DirMax: dir.DefaultMaxObjects, S3: s3.DefaultConfig(), FTP: ftp.DefaultConfig(), HTTP: http.DefaultConfig(), CMEMS: cmems.DefaultConfig(),
		Config: fetch.DefaultConfig(),
	}
}

// faults returns everything wrong with a. Of the kinds of archives only the
// one that counts is looked at.
func (a Archive) faults(section string) []fault {
	var all []fault
	switch a.Type {
	case "dir":
		if a.Dir == "" {
			all = faultsOf(section, errors.New("dir is empty: name the folder where granules appear"))
		}
		if a.DirMax < 1 {
			all = append(all, faultsOf(section, fmt.Errorf("dir_max_objects is %d, must be positive", a.DirMax))...)
		}
	case "s3":
		all = faultsOf(section+".s3", a.S3.Validate())
	case "ftp":
		all = faultsOf(section+".ftp", a.FTP.Validate())
	case "http":
		all = faultsOf(section+".http", a.HTTP.Validate())
	case "cmems":
		all = faultsOf(section+".cmems", pinned(a.CMEMS, "state_dir").Validate())
	default:
		all = faultsOf(section, fmt.Errorf("type is %q, must be dir, s3, ftp, http or cmems", a.Type))
	}
	watch := a.Config
	watch.Name = "archive" // the daemon gives it the dataset's
	return append(all, faultsOf(section, watch.Validate())...)
}

// Place says where the archive is, for people.
func (a Archive) Place() string {
	switch a.Type {
	case "s3":
		return a.S3.Endpoint + "/" + a.S3.Bucket
	case "ftp":
		return "ftp " + a.FTP.Address
	case "http":
		return a.HTTP.URL
	case "cmems":
		return "Copernicus Marine " + a.CMEMS.Dataset
	}
	return a.Dir
}

// archives makes the archives of the datasets.
type archives struct {
	cfg     Config
	manners fetch.Politeness
	log     *slog.Logger
}

func newArchives(cfg Config, log *slog.Logger) (*archives, error) {
	pacer, err := fetch.NewPacer(cfg.Manners.Pace)
	if err != nil {
		return nil, err
	}
	return &archives{cfg: cfg, log: log, manners: fetch.Politeness{UserAgent: "lacuna/" + version.String(), Pacer: pacer}}, nil
}

// connection is an archive with its manners, and what it is below them.
type connection struct {
	fetch.Archive
	bare    fetch.Archive
	readers int // that may be open at a time; 0: any number
}

// Close lets go of what the archive holds open.
func (c connection) Close() error {
	if closer, ok := c.bare.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// open returns the archive of a dataset. It touches neither the network nor
// the disk.
func (s *archives) open(set Dataset) (connection, error) {
	bare, err := s.bare(set)
	if err != nil {
		return connection{}, fmt.Errorf("archive of dataset %s: %w", set.Name, err)
	}
	if set.Archive.Type == "dir" { // a folder needs no manners
		return connection{Archive: bare, bare: bare}, nil
	}
	polite, err := fetch.NewPolite(bare, s.cfg.Manners, s.log.With("component", "fetch", "archive", set.Name))
	if err != nil {
		return connection{}, fmt.Errorf("archive of dataset %s: %w", set.Name, err)
	}
	readers := s.cfg.Manners.Concurrent
	if set.Archive.Type == "ftp" {
		readers = min(readers, set.Archive.FTP.Connections)
	}
	return connection{Archive: polite, bare: bare, readers: readers}, nil
}

func (s *archives) bare(set Dataset) (fetch.Archive, error) {
	switch a := set.Archive; a.Type {
	case "s3":
		return s3.New(a.S3, s.manners)
	case "ftp":
		return ftp.New(a.FTP, s.manners)
	case "http":
		return http.New(a.HTTP, s.manners)
	case "cmems":
		return cmems.New(pinned(a.CMEMS, s.cfg.state().Version(set.Name)), s.manners)
	}
	return dir.New(set.Archive.Dir, set.Archive.DirMax), nil
}

// pinned is cfg with a place to remember the chosen version in, where the
// configuration names none.
func pinned(cfg cmems.Config, file string) cmems.Config {
	if cfg.PinFile == "" {
		cfg.PinFile = file
	}
	return cfg
}
