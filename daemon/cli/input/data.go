package input

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lacuna/daemon/cli"
	"lacuna/daemon/fill"
	"lacuna/daemon/onboard"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"

	"github.com/spf13/pflag"
)

// Data are the flags that name the granules that a model learns from or is
// judged on.
type Data struct {
	Files   []string
	Options ingest.Options // how granules are read
	Mask    string         // of the sea: a file, builtin, learned or auto
	Tests   quality.Tests  // of observations
	Ice     quality.Ice    // what is under it is no observation

	validRange []float64
}

// Add adds the flags to those of a command.
func (d *Data) Add(f *pflag.FlagSet) {
	f.StringArrayVar(&d.Files, "data", nil, "`FILE|DIR` with granules of one dataset, or a file of lacuna pack; may be repeated (required)")
	f.StringVar(&d.Options.Variable, "var", "", "`VARIABLE` to learn (default: found)")
	f.StringVar(&d.Options.Product, "product", "", "product `NAME` that says how to read the files")
	f.StringVar(&d.Options.Transform, "transform", "", "`SPACE` in which values are taken, identity or log10 (default: by the product or variable)")
	f.Float64SliceVar(&d.validRange, "valid-range", nil, "`LOW,HIGH` in physical units, values outside are rejected (default: by the product or the file)")
	f.Lookup("valid-range").DefValue = "" // pflag would say []
	f.StringArrayVar(&d.Options.Quality, "quality", nil, "quality `RULE`, such as 'quality_level >= 4'; may be repeated")
	AddPart(f, &d.Options)
	AddTests(f, &d.Tests, &d.Ice)
	f.StringVar(&d.Mask, "mask", "auto", "sea mask: `FILE`, builtin, learned, or auto (the granules' own, else builtin; learned where that is wrong)")
}

// AddPart adds the flags that say which part of a file is read.
func AddPart(f *pflag.FlagSet, o *ingest.Options) {
	f.StringVar(&o.Group, "group", "", "`GROUP` of the file that is read, with those above it (default: all)")
	f.Float64SliceVar(&o.BBox, "bbox", nil, "`WEST,SOUTH,EAST,NORTH` in degrees, to which granules are cut (default: all of the grid)")
	f.Lookup("bbox").DefValue = ""
}

// AddTests adds the flags that name tests of observations, and where sea ice is.
func AddTests(f *pflag.FlagSet, t *quality.Tests, ice *quality.Ice) {
	*ice = quality.DefaultIce()
	f.StringVar(&ice.From, "sea-ice", "", "where the share of sea ice comes from: granule, or a NetCDF `FILE` with one map or a map a day (default: ice is not looked for)")
	f.StringVar(&ice.Variable, "sea-ice-var", "", "`VARIABLE` with the share of ice (default: the one with the standard name sea_ice_area_fraction)")
	f.Float64Var(&ice.Above, "sea-ice-above", ice.Above, "a cell with this `SHARE` of ice or more is under ice, and has no value")
	f.Var(t, "tests", "`TESTS` that observations must pass, of range, edge and spike, as in spike,edge or spike=6,edge=0,edge.cells=2; those that fail are gaps (default: none)")
}

// Validate reports a wrong flag, as an error of usage.
func (d *Data) Validate() error {
	if len(d.Files) == 0 {
		return cli.Usage(errors.New("--data FILE is required"))
	}
	switch len(d.validRange) {
	case 0:
	case 2:
		d.Options.Range = &[2]float64{d.validRange[0], d.validRange[1]}
	default:
		return cli.Usage(fmt.Errorf("--valid-range has %d numbers, must be LOW,HIGH", len(d.validRange)))
	}
	if err := errors.Join(d.Options.Validate(), d.Ice.Validate()); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// Dataset is the content of files of one grid.
type Dataset struct {
	Series   samples.Series
	Granules map[string]string // sha256 by name
	// Covariates are the files of those that were joined to the series, likewise.
	Covariates map[string]string
	Variable   string
	Name       string         // of the dataset, as products have it
	Sample     ingest.Granule // the first one, without its fields; zero: packed, its attributes are not known
}

// Load reads the files, which must be of one grid.
func (d *Data) Load(ctx context.Context, stderr io.Writer) (Dataset, error) {
	all, err := d.LoadAll(ctx, stderr)
	if err != nil {
		return Dataset{}, err
	}
	if len(all) > 1 {
		return Dataset{}, fmt.Errorf("the files are of %d grids, such as %v and %v: use files of one grid", len(all), all[0].Series.Grid, all[1].Series.Grid)
	}
	return all[0], nil
}

// packSuffix is the ending of the names of packed series.
const packSuffix = ".pack"

// LoadAll reads the files and returns a dataset for each grid, in the order in
// which the grids come. A file that was named and cannot be used is an error: a
// model must be trained on the data that were asked for. One that was found in a
// folder, such as a day of clouds only, is left out with a note.
func (d *Data) LoadAll(ctx context.Context, stderr io.Writer) ([]Dataset, error) {
	paths, err := onboard.GranuleFiles(d.Files...)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no .nc file below %v", d.Files)
	}
	isPack := func(path string) bool { return strings.HasSuffix(path, packSuffix) }
	groups, err := d.read(ctx, slices.DeleteFunc(slices.Clone(paths), isPack), stderr)
	if err != nil {
		return nil, err
	}
	var all []Dataset
	for _, g := range groups {
		set, err := g.dataset(ctx, d, stderr)
		if err != nil {
			return nil, err
		}
		all = append(all, set)
	}
	for _, path := range paths {
		if !isPack(path) {
			continue
		}
		set, err := d.unpack(path)
		if err != nil {
			return nil, err
		}
		all = append(all, set)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("none of %d files below %v can be used", len(paths), d.Files)
	}
	return all, nil
}

// A granuleGroup holds granules of one grid.
type granuleGroup struct {
	reader   *ingest.Reader
	first    ingest.Granule
	all      []ingest.Granule
	granules map[string]string
}

// read reads granules, a group for each grid.
func (d *Data) read(ctx context.Context, paths []string, stderr io.Writer) ([]*granuleGroup, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	reader, err := cli.NewReader()
	if err != nil {
		return nil, err
	}
	var groups []*granuleGroup
	bar := cli.NewProgress(stderr, "reading", len(paths))
	defer bar.Finish()
	for _, path := range paths {
		g, err := reader.Read(ctx, path, fill.Reading(d.Options, d.Ice))
		bar.Step()
		var bad *ingest.BadGranule
		if errors.As(err, &bad) && !slices.Contains(d.Files, path) {
			fmt.Fprintf(stderr, "lacuna: left out: %v\n", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(groups, func(have *granuleGroup) bool { return have.first.Fields[0].Grid.Same(g.Fields[0].Grid) })
		if at < 0 {
			at, groups = len(groups), append(groups, &granuleGroup{reader: reader, first: g, granules: map[string]string{}})
		}
		groups[at].granules[g.Name] = g.SHA256
		groups[at].all = append(groups[at].all, g)
	}
	return groups, nil
}

// dataset makes a series of the granules.
func (g *granuleGroup) dataset(ctx context.Context, d *Data, stderr io.Writer) (Dataset, error) {
	first := g.first
	first.Fields = nil
	for _, one := range g.all {
		first.Fields = append(first.Fields, one.Fields...)
	}
	sea, err := fill.SeaMask(ctx, d.Mask, g.reader, first, nil)
	if err != nil {
		return Dataset{}, fmt.Errorf("sea mask: %w", err)
	}
	if sea.Warning != "" {
		fmt.Fprintf(stderr, "lacuna: %s\n", sea.Warning)
	}
	screen := fill.Screening{Tests: d.Tests, Ice: d.Ice, Reader: g.reader}
	if _, err := screen.Series(ctx, g.first, g.all, sea.Mask); err != nil {
		return Dataset{}, err
	}
	var fields []field.Field
	for _, one := range g.all {
		fields = append(fields, one.Fields...)
	}
	out := Dataset{Granules: g.granules, Variable: first.Source.Variable, Name: fill.StandAloneDataset(first), Sample: first}
	out.Sample.Fields = nil
	out.Series, err = samples.New(fields, sea.Mask, first.Transform)
	return out, err
}

// unpack reads a packed series. The granules that it was made from are not known:
// it counts as one.
func (d *Data) unpack(path string) (Dataset, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Dataset{}, err
	}
	name := filepath.Base(path)
	sum := sha256.Sum256(data)
	out := Dataset{
		Granules: map[string]string{name: hex.EncodeToString(sum[:])},
		Variable: d.Options.Variable, Name: strings.TrimSuffix(name, packSuffix),
	}
	if out.Series, err = pack.Read(bytes.NewReader(data)); err != nil {
		return Dataset{}, fmt.Errorf("read %s: %w", path, err)
	}
	return out, nil
}
