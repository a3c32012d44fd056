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
	"lacuna/fetch/erddap"
	"lacuna/fetch/ftp"
	"lacuna/fetch/http"
	"lacuna/fetch/s3"
	"lacuna/fetch/stac"
	"lacuna/fetch/zarr"
	"lacuna/internal/faults"
)

// byAddress is the reason for a type that follows from the address.
const byAddress = "by the address that was given"

// cmemsDataset matches the names of observation datasets of Copernicus Marine.
var cmemsDataset = regexp.MustCompile(`^cmems_obs-[a-z]+_[a-z]+_[A-Za-z0-9_-]+$`)

// kinds are the kinds of archives. An address belongs to the first kind that
// accepts it; an address without a scheme is a folder.
var kinds = []kind{
	{
		name:     "erddap",
		example:  "https://coastwatch.pfeg.noaa.gov/erddap/griddap/erdMH1chla1day?chlorophyll",
		validate: func(a Archive) error { return a.ERDDAP.Validate() },
		place:    func(a Archive) string { return a.ERDDAP.URL + " " + a.ERDDAP.Dataset },
		open: func(a Archive, polite fetch.Politeness, _ string) (fetch.Archive, error) {
			return erddap.New(a.ERDDAP, polite)
		},
		at: func(a *Archive, place string, u *url.URL) (bool, error) {
			root, dataset, found := strings.Cut(u.Path, "/griddap/")
			if !onWeb(u) || !found {
				return false, nil
			}
			a.ERDDAP.URL = u.Scheme + "://" + u.Host + root
			a.ERDDAP.Dataset = strings.TrimSuffix(dataset, path.Ext(dataset)) // .html, .nc and the like
			a.ERDDAP.Variables = namesIn(u)
			if len(a.ERDDAP.Variables) == 0 {
				return true, fmt.Errorf("%s names no variable: write .../griddap/DATASET?VARIABLE", place)
			}
			return true, nil
		},
		propose: func(a Archive) []Line {
			return []Line{
				{0, "type", "erddap", byAddress},
				{0, "erddap", "", ""},
				{1, "url", a.ERDDAP.URL, "the server"},
				{1, "dataset", a.ERDDAP.Dataset, "its gridded dataset; every time of it is a granule"},
				{1, "variables", "[" + strings.Join(a.ERDDAP.Variables, ", ") + "]", "add that of the quality, if there is one; bbox of the dataset cuts what is fetched"},
				{0, "lookback", "960h", "the last 40 days to begin with; lacuna backfill fetches older ones"},
			}
		},
	},
	{
		name:     "stac",
		example:  "https://cmr.earthdata.nasa.gov/stac/POCLOUD/collections/MUR-JPL-L4-GLOB-v4.1_4.1",
		validate: func(a Archive) error { return a.STAC.Validate() },
		place:    func(a Archive) string { return a.STAC.URL + " " + strings.Join(a.STAC.Collections, ", ") },
		open: func(a Archive, polite fetch.Politeness, _ string) (fetch.Archive, error) {
			return stac.New(a.STAC, polite)
		},
		at: func(a *Archive, _ string, u *url.URL) (bool, error) {
			root, collection, found := strings.Cut(u.Path, "/collections/")
			if !onWeb(u) || !found {
				return false, nil
			}
			collection, _, _ = strings.Cut(collection, "/") // .../items
			a.STAC.URL, a.STAC.Collections = u.Scheme+"://"+u.Host+root, []string{collection}
			return true, nil
		},
		propose: func(a Archive) []Line {
			return []Line{
				{0, "type", "stac", byAddress},
				{0, "stac", "", ""},
				{1, "url", a.STAC.URL, "the landing page of the API; a token or a .netrc, if it needs one, goes beside it"},
				{1, "collections", "[" + strings.Join(a.STAC.Collections, ", ") + "]", "an item of it is a granule; name the asset if several are NetCDF, and in hosts where assets lie if that is another host"},
				{0, "lookback", "960h", "the last 40 days to begin with; lacuna backfill fetches older ones"},
			}
		},
	},
	{
		name:     "zarr",
		example:  "https://arco.example.org/chl.zarr?CHL",
		validate: func(a Archive) error { return a.Zarr.Validate() },
		place:    func(a Archive) string { return a.Zarr.Place() },
		open: func(a Archive, polite fetch.Politeness, _ string) (fetch.Archive, error) {
			return zarr.New(a.Zarr, polite)
		},
		at: zarrAt,
		propose: func(a Archive) []Line {
			lines := []Line{{0, "type", "zarr", byAddress}, {0, "zarr", "", ""}}
			if a.Zarr.Store != "" {
				lines = append(lines, Line{1, "store", a.Zarr.Store, "every time of the store is a granule"})
			} else {
				lines = append(lines, Line{1, "s3", "", ""}, Line{2, "endpoint", a.Zarr.S3.Endpoint, "the host"},
					Line{2, "bucket", a.Zarr.S3.Bucket, "keys, if it needs any, go into access_key and secret_key"},
					Line{2, "prefix", a.Zarr.S3.Prefix, "the store; every time of it is a granule"})
			}
			return append(lines, Line{1, "variables", "[" + strings.Join(a.Zarr.Variables, ", ") + "]", "add that of the quality, if there is one; bbox of the dataset cuts what is fetched"})
		},
		local: func(a Archive) bool { return a.Zarr.Local() },
	},
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
		local: func(Archive) bool { return true },
	},
}

// onWeb reports whether an address is of http or https.
func onWeb(u *url.URL) bool { return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") }

// namesIn returns the variables in the query of an address, without their
// ranges.
func namesIn(u *url.URL) []string {
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		return nil
	}
	query, _, _ = strings.Cut(query, "&")
	var names []string
	for word := range strings.SplitSeq(query, ",") {
		if name, _, _ := strings.Cut(word, "["); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// zarrAt reads the address of a store: its path ends in .zarr or .zarr.zip, and
// its query names the variables.
func zarrAt(a *Archive, place string, u *url.URL) (bool, error) {
	if at := strings.TrimRight(u.Path, "/"); !strings.HasSuffix(at, ".zarr") && !strings.HasSuffix(at, ".zarr.zip") {
		return false, nil
	}
	bare, _, _ := strings.Cut(place, "?")
	switch {
	case u.Scheme == "s3":
		bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
		a.Zarr.S3.Endpoint, a.Zarr.S3.Bucket, a.Zarr.S3.Prefix = "https://"+u.Host, bucket, prefix
	case onWeb(u):
		a.Zarr.Store = bare
	case u.Host == "":
		var err error
		if a.Zarr.Store, err = filepath.Abs(bare); err != nil {
			return true, err
		}
	default:
		return false, nil
	}
	if a.Zarr.Variables = namesIn(u); len(a.Zarr.Variables) == 0 {
		return true, fmt.Errorf("%s names no variable: write %s?VARIABLE", place, bare)
	}
	return true, nil
}
