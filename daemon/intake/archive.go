package intake

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/fetch/dir"
	"lacuna/fetch/ftp"
	"lacuna/fetch/http"
	"lacuna/fetch/s3"
	"lacuna/internal/faults"
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

// DefaultArchive returns the settings of an archive that a file does not give.
func DefaultArchive() Archive {
	return Archive{
		Type: "dir", DirMax: dir.DefaultMaxObjects, S3: s3.DefaultConfig(), FTP: ftp.DefaultConfig(), HTTP: http.DefaultConfig(), CMEMS: cmems.DefaultConfig(),
		Config: fetch.DefaultConfig(),
	}
}

// Validate reports everything wrong with a. Of the kinds of archives only the
// one that counts is looked at.
func (a Archive) Validate() error {
	var errs faults.List
	switch a.Type {
	case "dir":
		errs.Check(a.Dir != "", "dir is empty: name the folder where granules appear")
		errs.Check(a.DirMax >= 1, "dir_max_objects is %d, must be positive", a.DirMax)
	case "s3":
		errs.Add(faults.In("s3", a.S3.Validate()))
	case "ftp":
		errs.Add(faults.In("ftp", a.FTP.Validate()))
	case "http":
		errs.Add(faults.In("http", a.HTTP.Validate()))
	case "cmems":
		errs.Add(faults.In("cmems", pinned(a.CMEMS, "state_dir").Validate()))
	default:
		errs.Check(false, "type is %q, must be dir, s3, ftp, http or cmems", a.Type)
	}
	watch := a.Config
	watch.Name = "archive" // it gets the dataset's
	errs.Add(watch.Validate())
	return errs.Err()
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

// At returns the archive at a place that a user names: a folder, an
// address with the scheme http, https, ftp or s3 (s3://HOST/BUCKET/PREFIX), or
// a dataset of Copernicus Marine.
func At(place string) (Archive, error) {
	a := DefaultArchive()
	if cmemsDataset.MatchString(place) {
		a.Type, a.CMEMS.Dataset = "cmems", place
		return a, nil
	}
	u, err := url.Parse(place)
	if err != nil || u.Scheme == "" || u.Host == "" {
		a.Dir, err = filepath.Abs(place)
		return a, err
	}
	switch u.Scheme {
	case "http", "https":
		a.Type, a.HTTP.URL = "http", place
	case "ftp":
		a.Type, a.FTP.Address, a.FTP.Root = "ftp", u.Host, path.Join("/", u.Path)
	case "s3":
		bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
		if bucket == "" {
			return a, fmt.Errorf("%s names no bucket: write s3://HOST/BUCKET/PREFIX", place)
		}
		a.Type, a.S3.Endpoint, a.S3.Bucket, a.S3.Prefix = "s3", "https://"+u.Host, bucket, prefix
	default:
		return a, fmt.Errorf("%s: the schemes are http, https, ftp and s3", place)
	}
	return a, nil
}

// cmemsDataset is how Copernicus Marine names datasets of observations.
var cmemsDataset = regexp.MustCompile(`^cmems_obs-[a-z]+_[a-z]+_[A-Za-z0-9_-]+$`)
