package stac

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/fetch"
	"lacuna/fetch/web"
	"lacuna/internal/bbox"
)

// item is an item as far as it matters here.
type item struct {
	ID         string           `json:"id"`
	Collection string           `json:"collection"`
	BBox       []float64        `json:"bbox"`
	Assets     map[string]asset `json:"assets"`
	Properties struct {
		Datetime string `json:"datetime"`
		Start    string `json:"start_datetime"`
		Updated  string `json:"updated"`
		Created  string `json:"created"`
	} `json:"properties"`
}

// asset is an asset, with the fields of the file extension.
type asset struct {
	Href     string   `json:"href"`
	Type     string   `json:"type"`
	Roles    []string `json:"roles"`
	Size     *int64   `json:"file:size"`
	Checksum string   `json:"file:checksum"` // a multihash in hex
	Updated  string   `json:"updated"`
}

// take adds the asset of an item to what was found. Of two items of one name,
// which pages that shift can show, the one updated last counts.
func (l *listing) take(it item, at *url.URL) {
	cfg := l.archive.cfg
	if it.Collection != "" && !slices.Contains(cfg.Collections, it.Collection) {
		return // the search did not heed the collections
	}
	if box, err := bbox.Of(flat(it.BBox)); err == nil && !cfg.Box.Touches(box) {
		return // nor the box
	}
	as, err := it.asset(cfg.Asset)
	if err == nil && (it.ID == "" || as.Href == "") {
		err = errors.New("it has no id, or its asset no address")
	}
	if err != nil {
		l.unread.Add(fmt.Errorf("item %.100q: %w: %w", it.ID, fetch.ErrUnacceptable, err))
		return
	}
	href, err := at.Parse(as.Href)
	if err != nil || href.Scheme != "http" && href.Scheme != "https" || href.User != nil {
		l.unread.Add(fmt.Errorf("item %.100q: %w: its asset is not at an address of http or https", it.ID, fetch.ErrUnacceptable))
		return
	}
	o := it.object(as, path.Ext(href.Path))
	if fetch.Unfinished(o.Name) || !l.scope.Holds(o.Name) {
		return
	}
	if seen, twice := l.found[o.Name]; twice && seen.object.ModTime.After(o.ModTime) {
		return
	}
	l.found[o.Name] = sighting{stamp: href.String() + it.Properties.Updated + as.Updated + as.Checksum, href: href, object: o}
}

// flat returns a box of three dimensions as one of two.
func flat(numbers []float64) []float64 {
	if len(numbers) == 6 {
		return []float64{numbers[0], numbers[1], numbers[3], numbers[4]}
	}
	return numbers
}

// netCDF tells the media types and endings of files that may be granules.
func (a asset) netCDF() bool {
	kind, _, _ := strings.Cut(strings.ToLower(a.Type), ";")
	switch kind {
	case "application/x-netcdf", "application/netcdf", "application/x-netcdf4", "application/x-hdf5", "application/x-hdf":
		return true
	}
	u, err := url.Parse(a.Href)
	return err == nil && slices.Contains([]string{".nc", ".nc4", ".cdf"}, strings.ToLower(path.Ext(u.Path)))
}

// asset returns the asset of a key; of none, the only one that is NetCDF and
// has an address of http or https, or the only one of these with the role data.
func (it item) asset(key string) (asset, error) {
	if key != "" {
		as, ok := it.Assets[key]
		if !ok {
			return asset{}, fmt.Errorf("it has no asset %q; its assets are %s", key, it.keys())
		}
		return as, nil
	}
	var fit, data []asset
	for _, key := range slices.Sorted(maps.Keys(it.Assets)) {
		as := it.Assets[key]
		if !as.netCDF() || strings.HasPrefix(as.Href, "s3:") || strings.Contains(as.Href, "/opendap") {
			continue
		}
		if fit = append(fit, as); slices.Contains(as.Roles, "data") {
			data = append(data, as)
		}
	}
	switch {
	case len(data) == 1:
		return data[0], nil
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) == 0:
		return asset{}, fmt.Errorf("none of its assets is NetCDF; set asset to one of %s", it.keys())
	}
	return asset{}, fmt.Errorf("%d of its assets are NetCDF; set asset to one of %s", len(fit), it.keys())
}

func (it item) keys() string {
	const enough = 10
	keys := slices.Sorted(maps.Keys(it.Assets))
	return fmt.Sprintf("%.200q", keys[:min(len(keys), enough)])
}

// object returns the asset as an object. Its name has a day: by the id of the
// item, else by its time.
func (it item) object(as asset, ending string) fetch.Object {
	o := fetch.Object{Name: it.ID, Size: -1, ModTime: first(it.Properties.Updated, as.Updated, it.Properties.Created)}
	if !strings.EqualFold(path.Ext(it.ID), ending) {
		o.Name += ending
	}
	if _, dated := fetch.DayInName(o.Name); !dated {
		if at := first(it.Properties.Datetime, it.Properties.Start); !at.IsZero() {
			o.Name = at.Format("2006/01/02/") + o.Name
		}
	}
	if as.Size != nil && *as.Size >= 0 {
		o.Size = *as.Size
	}
	const sha256Hash, md5Hash = "1220", "d50110" // codes and lengths of a multihash
	sum := strings.ToLower(as.Checksum)
	if digest, ok := strings.CutPrefix(sum, sha256Hash); ok && len(digest) == 64 && isHex(digest) {
		o.Digest, o.ETag = digest, "sha256:"+digest
	}
	if digest, ok := strings.CutPrefix(sum, md5Hash); ok && len(digest) == 32 && isHex(digest) {
		o.MD5 = digest
	}
	return o
}

// first returns the first of texts that is a time; zero where none is.
func first(texts ...string) time.Time {
	for _, text := range texts {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}

// askers is the number of HEAD requests at a time; the pacer spaces them out.
const askers = 8

// describe returns the objects that were found. Where an item does not say how
// large its asset is and since when, the host of the asset is asked, once for
// each version of the item.
func (l *listing) describe(ctx context.Context) ([]fetch.Object, error) {
	names := slices.Sorted(maps.Keys(l.found))
	described := make([]*sighting, len(names))
	g, work := errgroup.WithContext(ctx)
	g.SetLimit(askers)
	for i, name := range names {
		g.Go(func() (err error) {
			described[i], err = l.complete(work, l.found[name])
			return err
		})
	}
	err := g.Wait()
	var objects []fetch.Object
	for i, name := range names {
		if described[i] == nil {
			delete(l.found, name)
			continue
		}
		l.found[name] = *described[i]
		objects = append(objects, described[i].object)
	}
	return objects, err
}

// complete returns a sighting with the size and the time of its asset; nil
// where the asset is gone.
func (l *listing) complete(ctx context.Context, s sighting) (*sighting, error) {
	if s.object.Size >= 0 && !s.object.ModTime.IsZero() {
		return &s, nil
	}
	a := l.archive
	a.mu.Lock()
	seen, ok := a.known[s.object.Name]
	a.mu.Unlock()
	if ok && seen.stamp == s.stamp && !s.object.ModTime.IsZero() { // an item without a time may change unnoticed
		return &seen, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, s.href.String(), nil)
	if err != nil {
		return nil, err
	}
	l.auth.sign(req)
	resp, err := a.client.Do(req, l.auth.secrets()...)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	resp.Body.Close()
	if l.scope.Progress != nil {
		l.scope.Progress()
	}
	if resp.ContentLength < 0 {
		return nil, fmt.Errorf("neither the item %s nor the host of its asset gives its length, so a cut download could pass for a whole one", s.object.Name)
	}
	s.asked = true
	s.object.Size = resp.ContentLength
	if tag := web.Tag(resp.Header.Get("ETag")); tag != "" {
		s.object.ETag = tag
	}
	if modified, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		s.object.ModTime = modified.UTC()
	}
	return &s, nil
}
