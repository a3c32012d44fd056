package cmems

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/s3"
	"lacuna/fetch/web"
	"lacuna/internal/durable"
)

// resolve reads the catalogues and returns where the version to use lies. The
// caller holds the turn.
func (a *Archive) resolve(ctx context.Context) (*location, error) {
	at := &location{read: time.Now()}
	catalogues, err := a.catalogues(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("read client configuration: %w", err)
	}
	var errs []error
	for _, c := range catalogues {
		found, err := a.versions(ctx, c)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			errs = append(errs, err)
			at.failures = append(at.failures, "catalogue "+shownURL(c.StacRoot))
			continue
		}
		for _, v := range found {
			at.versions = merge(at.versions, v)
		}
	}
	if len(errs) == len(catalogues) {
		return nil, fmt.Errorf("read catalogue: %w", errors.Join(errs...))
	}
	if len(at.versions) == 0 {
		return nil, fmt.Errorf("dataset %q is in no catalogue; correct dataset or part", a.cfg.Dataset)
	}
	v, err := a.pick(at.versions)
	if err != nil {
		return nil, err
	}
	at.version = v.Label
	err = a.places(v, at)
	return at, err
}

// clientConfig is the part of the client configuration that is used.
type clientConfig struct {
	Catalogues []catalogue `json:"catalogues"`
}

type catalogue struct {
	StacRoot  string `json:"stacRoot"`
	IDMapping string `json:"idMapping"`
}

// catalogues reads the client configuration from the first host that has it.
func (a *Archive) catalogues(ctx context.Context, at *location) ([]catalogue, error) {
	var errs []error
	for _, address := range a.cfg.ConfigURLs {
		var c clientConfig
		err := a.get(ctx, address, &c)
		if err == nil && len(c.Catalogues) > maxCatalogues {
			return nil, fmt.Errorf("GET %s: %w", shownURL(address), tooMany("catalogues", maxCatalogues))
		}
		if err == nil && len(c.Catalogues) > 0 {
			return c.Catalogues, nil
		}
		if err == nil {
			err = fmt.Errorf("GET %s: it names no catalogue", shownURL(address))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		errs = append(errs, err)
		at.failures = append(at.failures, "configuration "+shownURL(address))
	}
	return nil, errors.Join(errs...)
}

// product is the part of a product's description that is used.
type product struct {
	Links []struct {
		Rel  string `json:"rel"`
		Href string `json:"href"`
	} `json:"links"`
}

// item is the part of a version's description that is used.
type item struct {
	ID         string `json:"id"`
	Properties struct {
		Preparation *bool  `json:"admp_in_preparation"`
		Released    string `json:"admp_released_date"`
		Retired     string `json:"admp_retired_date"`
	} `json:"properties"`
	Assets map[string]struct {
		Href string `json:"href"`
	} `json:"assets"`
}

// versions returns the versions of the dataset in one catalogue: none, where it
// does not list it.
func (a *Archive) versions(ctx context.Context, c catalogue) ([]Version, error) {
	var products map[string]string
	if err := a.get(ctx, c.IDMapping, &products); err != nil {
		return nil, err
	}
	if strings.Count(products[a.cfg.Dataset], ",") >= maxProducts {
		return nil, fmt.Errorf("read %s: %w", shownURL(c.IDMapping), tooMany("products of the dataset", maxProducts))
	}
	var versions []Version
	items := 0
	for id := range strings.SplitSeq(products[a.cfg.Dataset], ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		root := strings.TrimRight(c.StacRoot, "/") + "/" + url.PathEscape(id) + "/"
		var p product
		if err := a.get(ctx, root+"product.stac.json", &p); err != nil {
			return nil, err
		}
		for _, link := range p.Links {
			folder, _, _ := strings.Cut(link.Href, "/")
			dataset, _, part := parseItem(folder)
			if link.Rel != "item" || dataset != a.cfg.Dataset || part != a.cfg.Part {
				continue
			}
			if items++; items > maxItems {
				return nil, fmt.Errorf("read %s: %w", shownURL(root+"product.stac.json"), tooMany("versions of the dataset", maxItems))
			}
			var it item
			if err := a.get(ctx, root+link.Href, &it); err != nil {
				return nil, err
			}
			if v, ok := it.version(); ok {
				versions = merge(versions, v)
			}
		}
	}
	return versions, nil
}

// version returns the version that an item describes, if it has files.
func (it item) version() (Version, bool) {
	_, label, _ := parseItem(it.ID)
	native := it.Assets["native"].Href
	preparation := it.Properties.Preparation
	return Version{
		Label: label, Released: instant(it.Properties.Released), Retired: instant(it.Properties.Retired),
		Preparation: preparation != nil && *preparation, hrefs: []string{native},
	}, native != ""
}

// instant reads a date as catalogues write it; zero where there is none.
func instant(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

const (
	// maxDocumentBytes bounds a document of the catalogue; the mapping of all
	// datasets is the largest and has some hundred kilobytes.
	maxDocumentBytes = 8 << 20
	// maxCatalogues, maxProducts and maxItems bound the requests that documents
	// cause: there are two catalogues, a dataset belongs to one or two
	// products, and has a version or two a year.
	maxCatalogues, maxProducts, maxItems = 8, 8, 100
)

// tooMany is the error of a document that names more things than are followed.
func tooMany(what string, most int) error {
	return fmt.Errorf("%w: it names more than %d %s", fetch.ErrUnacceptable, most, what)
}

// get reads a JSON document.
func (a *Archive) get(ctx context.Context, address string, to any) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return errors.New("the catalogue names an address that is not a URL")
	}
	query := u.Query()
	for name, value := range a.query() {
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocumentBytes)).Decode(to); err != nil {
		return fmt.Errorf("read %s: %w", web.Shown(u), noEOF(err))
	}
	return nil
}

// noEOF makes the early end of a document an error that nobody takes for
// io.EOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// query names the program and, once it is known, the user, as the service asks
// its clients to. The caller holds the turn.
func (a *Archive) query() map[string]string {
	client, version, _ := strings.Cut(a.politeness.UserAgent, "/")
	query := map[string]string{"x-cop-client": client, "x-cop-client-version": version}
	if a.user != "" {
		query["x-cop-user"] = a.user
	}
	return query
}

// pick returns the version of the configuration or of the pin file, or else
// chooses one and writes the pin file.
func (a *Archive) pick(versions []Version) (Version, error) {
	label := a.cfg.Version
	if label == "" {
		pin, err := os.ReadFile(a.cfg.PinFile)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return Version{}, fmt.Errorf("read pin_file: %w", err)
		}
		label = strings.TrimSpace(string(pin))
	}
	if label == "" {
		v, ok := choose(versions, time.Now())
		if !ok {
			return Version{}, fmt.Errorf("every version of %s is retired; give another dataset", a.cfg.Dataset)
		}
		if err := durable.WriteFile(a.cfg.PinFile, []byte(v.Label+"\n"), 0o644); err != nil {
			return Version{}, fmt.Errorf("write pin_file: %w", err)
		}
		return v, nil
	}
	if i := slices.IndexFunc(versions, func(v Version) bool { return v.Label == label }); i >= 0 {
		return versions[i], nil
	}
	var labels []string
	for _, v := range versions {
		labels = append(labels, v.Label)
	}
	return Version{}, fmt.Errorf("%w: version %s of %s is in no catalogue, there are %s; set version to one of them",
		fetch.ErrPermanent, label, a.cfg.Dataset, strings.Join(labels, ", "))
}

// places adds the archives that hold a version to at. A place that may not be
// asked is skipped where there is another.
func (a *Archive) places(v Version, at *location) error {
	var errs []error
	for _, href := range v.hrefs {
		u, err := url.Parse(href)
		if err != nil {
			return fmt.Errorf("version %s has an address that is not a URL", v.Label)
		}
		if err := a.cfg.allows(u); err != nil {
			errs = append(errs, err)
			at.failures = append(at.failures, web.Shown(u)+", which the setting hosts does not allow,")
			continue
		}
		cfg := s3.DefaultConfig()
		cfg.Endpoint = u.Scheme + "://" + u.Host
		cfg.Bucket, cfg.Prefix, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
		cfg.Web, cfg.Query, cfg.MaxObjects = a.cfg.Web, a.query(), a.cfg.MaxObjects
		place, err := s3.New(cfg, a.politeness)
		if err != nil {
			return fmt.Errorf("version %s lies at %s: %w", v.Label, web.Shown(u), err)
		}
		at.places = append(at.places, place)
	}
	if len(at.places) == 0 {
		return fmt.Errorf("version %s of %s: %w", v.Label, a.cfg.Dataset, errors.Join(errs...))
	}
	return nil
}

func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is not a URL"
	}
	return web.Shown(u)
}
