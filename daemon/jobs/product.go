package jobs

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"math"
	"os"
	"time"

	"lacuna/daemon/fill"
	"lacuna/internal/convert"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/netcdf"
	"lacuna/publish/quicklook"
)

// Made describes a product whose files were written.
type Made struct {
	Told       publish.Product  `json:"told"`              // for receivers, without its files and links
	Members    *publish.Members `json:"members,omitempty"` // nil: none were drawn
	Drawn      bool             `json:"drawn,omitempty"`   // a quick look was drawn
	Undrawn    string           `json:"undrawn,omitempty"` // why not, where one was wanted
	Observed   float64          `json:"observed"`          // share of the sea with a value, before filling
	Covered    float64          `json:"covered"`           // and after
	Scored     int              `json:"scored,omitempty"`  // number of scored days by which the uncertainty is calibrated
	Neighbours int              `json:"neighbours"`        // that had a part in it
	Note       string           `json:"note,omitempty"`    // why the analysis is poorer than it could be; empty: it is not
}

// Draft says how the files of a product are made.
type Draft struct {
	Name    string // of the product's file, for its members to refer to
	Picture bool   // draw a quick look
}

// Write writes the product of an outcome to path, its members to
// disk.MembersPath(path), and a quick look to path with .png added.
func Write(path string, d Draft, granule ingest.Granule, outcome fill.Outcome) (Made, error) {
	made := Made{
		Told: Describe(granule, outcome), Observed: outcome.Observed, Covered: outcome.After, Scored: outcome.Scored,
		Neighbours: outcome.Product.Neighbours(), Note: outcome.Note,
	}
	size, m, err := outcome.Write(path, disk.MembersPath(path), publish.MembersName(d.Name))
	if err != nil {
		return Made{}, err
	}
	if m != nil {
		made.Members = &publish.Members{Name: m.Name, Size: size, SHA256: m.SHA256, Count: m.Count}
	}
	if !d.Picture {
		return made, nil
	}
	if err := draw(path+".png", granule, outcome); err != nil {
		made.Undrawn = err.Error() // a picture is no reason to hold a product back
		if err := os.Remove(path + ".png"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Made{}, err
		}
		return made, nil
	}
	made.Drawn = true
	return made, nil
}

// Describe returns the description of a product for receivers, without its
// file.
func Describe(granule ingest.Granule, outcome fill.Outcome) publish.Product {
	out := outcome.Product
	first, _ := field.Span(granule.Fields)
	return publish.Product{
		Dataset: out.Dataset, Time: first, Revision: out.Revision, BBox: boundingBox(granule.Fields[0].Grid),
		Variable: out.Names().Value, Units: cmp.Or(out.UnitsInFile(), unitsOf(granule.Source, out)), Model: out.Model, Seed: out.Seed, Trust: trustOf(out.Trust), Sampling: samplingOf(out.Sampling, outcome.Follows), Refused: refusedOf(out.Refused), Mode: out.Mode, Input: out.Input(),
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

// refusedOf returns what tests refused, for receivers.
func refusedOf(all []netcdf.Refusal) publish.Refusals {
	return convert.Each(all, func(r netcdf.Refusal) publish.Refusal { return publish.Refusal(r) })
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

// draw draws the last field of a granule, before and after.
func draw(path string, granule ingest.Granule, outcome fill.Outcome) (err error) {
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
