package work

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/netcdf"
)

// draft is the product of a granule that is to be stored.
type draft struct {
	granule string    // name of the granule's file
	file    string    // name of the product's file
	first   time.Time // time of its first field
	filled  time.Time
	began   time.Time // start of the work on it
	write   func(path string) (jobs.Made, error)
	sum     string // sha256 that its file must have; empty: it is not known before
}

// storeProduct writes the product of a granule to the folder of products, and
// returns its description for the sinks.
func (w *Worker) storeProduct(ctx context.Context, g ledger.Granule, d draft) (publish.Product, jobs.Made, disk.Stored, error) {
	item := disk.Item{Dataset: w.set.Name, Granule: g.Name, Name: d.file, Time: d.first, Revision: g.Revision}
	var made jobs.Made
	stored, err := w.Store.Put(ctx, item, func(path string) (err error) {
		made, err = d.write(path)
		return err
	})
	if err == nil && d.sum != "" && stored.SHA256 != d.sum {
		err = fmt.Errorf("store product of %s: the file has the sha256 %s, and its worker says %s", g.Name, stored.SHA256, d.sum)
	}
	if err != nil {
		return publish.Product{}, jobs.Made{}, disk.Stored{}, err
	}
	if made.Undrawn != "" {
		w.Log.Warn("quick look left out", "granule", g.Name, "err", made.Undrawn)
	}
	p := made.Told
	p.Granule, p.Name, p.Path, p.Size, p.SHA256 = g.Name, filepath.Base(stored.Visible), stored.Path, stored.Bytes, stored.SHA256
	if p.Members = made.Members; p.Members != nil {
		p.Members.Path = disk.MembersPath(stored.Path)
	}
	p.Links = w.cfg.Links.of(stored.Visible, made.Drawn, made.Members != nil)
	return p, made, stored, nil
}

// fileName returns the name of the file of a product, but for its mode: that is known
// after the analysis, see publish.WithMode.
func (w *Worker) fileName(revision int, granule ingest.Granule) string {
	first, _ := field.Span(granule.Fields)
	product := fill.Outline(fill.Job{Granule: granule})
	return w.set.template().Name(publish.Naming{
		Dataset: w.set.Name, Granule: strings.TrimSuffix(datedName(granule.Name, first), "_l4"), Time: first, Revision: revision,
		Institution: cmp.Or(w.cfg.Credits.Institution, netcdf.DefaultCredits().Institution), SSTType: product.SSTType(),
	})
}

// template returns the template of the names of files.
func (d Dataset) template() publish.Template { return cmp.Or(d.FileName, FileNames(d.Layout)) }

// FileNames returns the template of the names in a layout, where none is configured.
// Without a revision in it, a revision replaces the one before under the same name, as
// the catalogue of Copernicus has it.
func FileNames(l netcdf.Layout) publish.Template {
	switch l {
	case netcdf.GHRSST:
		return "{date}{time}-{institution}-L4_GHRSST-{sst_type}-{product}-{mode}-v02.1-fv{revision:02}.0.nc"
	case netcdf.CMEMS:
		return "{date}_{dataset}.nc"
	}
	return "{granule}_l4.nc"
}

// datedName returns the name of a product in the folder of its month. The names of
// most granules begin with their day; it is put before the others, because an
// archive with a folder for each day may have one name for all of them.
func datedName(granule string, first time.Time) string {
	name := fill.ProductName(granule)
	first = first.UTC()
	for _, layout := range []string{"20060102", "2006-01-02", "2006002"} {
		if strings.Contains(name, first.Format(layout)) {
			return name
		}
	}
	return first.Format("20060102") + "_" + name
}

// Links are the addresses of products for receivers.
type Links struct {
	Products string // folder of products
	BaseURL  string // address of that folder for receivers; empty: links are relative to it
}

// of returns the links to a product.
func (l Links) of(visible string, drawn, members bool) map[string]string {
	rel, err := filepath.Rel(l.Products, visible)
	if err != nil {
		return nil
	}
	rel = filepath.ToSlash(rel)
	at := func(p string) string {
		u := url.URL{Path: p}
		if l.BaseURL == "" {
			return u.EscapedPath()
		}
		return strings.TrimSuffix(l.BaseURL, "/") + "/" + u.EscapedPath()
	}
	all := map[string]string{"file": at(rel), "sha256": at(rel + ".sha256")}
	if drawn {
		all["quick_look"] = at(strings.TrimSuffix(rel, path.Ext(rel)) + ".png")
	}
	if members {
		all["members"] = at(publish.MembersName(rel))
	}
	return all
}
