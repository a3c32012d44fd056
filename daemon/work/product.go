package work

import (
	"bufio"
	"context"
	"errors"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/netcdf"
	"lacuna/publish/quicklook"
)

// storeProduct writes the product of a granule to the folder of products, and
// returns its description for the sinks.
func (w *Worker) storeProduct(ctx context.Context, g ledger.Granule, granule ingest.Granule, outcome fill.Outcome) (publish.Product, disk.Stored, error) {
	first, _ := field.Span(granule.Fields)
	name := datedName(granule.Name, first)
	item := disk.Item{Dataset: w.set.Name, Granule: g.Name, Name: name, Time: first, Revision: g.Revision}
	drawn := false
	var members *publish.Members
	stored, err := w.Store.Put(ctx, item, func(path string) (err error) {
		if members, err = writeProduct(path, name, outcome); err != nil {
			return err
		}
		if w.cfg.QuickLook {
			if err := drawProduct(path+".png", granule, outcome); err != nil {
				w.Log.Warn("quick look left out", "granule", g.Name, "err", err) // a picture is no reason to hold a product back
				return errors.Join(state.Remove(path + ".png"))
			}
			drawn = true
		}
		return nil
	})
	if err != nil {
		return publish.Product{}, disk.Stored{}, err
	}
	p := describeProduct(granule, outcome)
	p.Granule, p.Name, p.Path, p.Size, p.SHA256 = g.Name, filepath.Base(stored.Visible), stored.Path, stored.Bytes, stored.SHA256
	if p.Members = members; members != nil {
		members.Path = disk.MembersPath(stored.Path)
	}
	p.Links = w.cfg.Links.of(stored.Visible, drawn, members != nil)
	return p, stored, nil
}

// writeProduct writes a product, and its members where the store looks for them.
func writeProduct(path, name string, outcome fill.Outcome) (*publish.Members, error) {
	size, m, err := outcome.Write(path, disk.MembersPath(path), publish.MembersName(name))
	if err != nil || m == nil {
		return nil, err
	}
	return &publish.Members{Name: m.Name, Size: size, SHA256: m.SHA256, Count: m.Count}, nil
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

// describeProduct returns the description of a product for receivers, without its
// file.
func describeProduct(granule ingest.Granule, outcome fill.Outcome) publish.Product {
	out := outcome.Product
	first, _ := field.Span(granule.Fields)
	return publish.Product{
		Dataset: out.Dataset, Time: first, Revision: out.Revision, BBox: boundingBox(granule.Fields[0].Grid),
		Variable: out.Variable, Units: unitsOf(granule.Source, out), Model: out.Model, Seed: out.Seed, Trust: trustOf(out.Trust), Sampling: samplingOf(out.Sampling, outcome.Follows), Mode: out.Mode, Input: out.Input(),
		CoverageBefore: outcome.Observed, CoverageAfter: outcome.After, MeanUncertainty: meanUncertainty(out),
		Created: out.Created, Published: out.Published, Fetched: out.Fetched, Filled: out.Filled,
	}
}

// trustOf returns how far a model was followed, for receivers.
func trustOf(t *netcdf.Trust) *publish.Trust {
	if t == nil {
		return nil
	}
	return &publish.Trust{Model: t.Model, Weight: t.Weight, ScoredDays: t.Days}
}

// samplingOf returns how networks filled a product, for receivers.
func samplingOf(s *netcdf.Sampling, follows infer.Tier) *publish.Sampling {
	if s == nil {
		return nil
	}
	return &publish.Sampling{Tier: s.Tier, Members: s.Members, Sampler: s.Sampler, Mean: s.Mean, Follows: string(follows)}
}

// boundingBox returns west, south, east, north of the cell centres, with
// longitudes in -180..180.
func boundingBox(g field.Grid) [4]float64 {
	south, north, west, east := g.Bounds()
	if g.Periodic() {
		return [4]float64{-180, south, 180, north}
	}
	if west < -180 || east > 180 {
		west, east = field.Wrap(west), field.Wrap(east)
	}
	return [4]float64{west, south, east, north}
}

// unitsOf returns the units of the product's variable.
func unitsOf(s ingest.Source, p netcdf.Product) string {
	if v, ok := s.Var(p.Variable); ok {
		for _, a := range v.Attrs {
			if units, ok := a.Value.(string); ok && a.Name == "units" {
				return units
			}
		}
	}
	return p.Units
}

// meanUncertainty returns the mean of one standard deviation over the filled
// cells, in the space that the product gives it in; 0 where none was filled.
func meanUncertainty(p netcdf.Product) float64 {
	var sum float64
	n := 0
	for i, sigma := range p.Sigma {
		if p.Flags[i]&netcdf.Interpolated != 0 && !math.IsNaN(float64(sigma)) {
			sum += float64(sigma)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
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

// drawProduct draws the last field of a granule, before and after.
func drawProduct(path string, granule ingest.Granule, outcome fill.Outcome) (err error) {
	p := outcome.Product
	last := len(granule.Fields) - 1
	f := granule.Fields[last]
	n := f.Grid.Len()
	scene := quicklook.Scene{
		Title: p.Dataset + ", " + p.Variable + ", " + f.Time.UTC().Format(time.DateOnly),
		Units: unitsOf(granule.Source, p), Lat: f.Grid.Lat, Lon: f.Grid.Lon, Log: p.Space == netcdf.Log10,
		Observed: f.Values, Filled: p.Value[last*n : (last+1)*n], Sigma: p.Sigma[last*n : (last+1)*n], Land: make([]bool, n),
	}
	scene.Members = outcome.Analyses[last].Members
	scene.SigmaUnits = scene.Units
	if scene.Log {
		scene.SigmaUnits = "of log10"
	}
	for i, flags := range p.Flags[last*n : (last+1)*n] {
		scene.Land[i] = flags&infer.Land != 0
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	if err := quicklook.Render(buffered, scene); err != nil {
		return err
	}
	return buffered.Flush()
}
