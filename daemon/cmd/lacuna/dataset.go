package main

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

	"lacuna/daemon"
	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// dataFlags name the files that a model learns from or is judged on.
type dataFlags struct {
	files      []string
	options    ingest.Options
	validRange []float64
	mask       string
}

func (d *dataFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&d.files, "data", nil, "`FILE|DIR` with granules of one dataset, or a file of lacuna pack; may be repeated (required)")
	f.StringVar(&d.options.Variable, "var", "", "`VARIABLE` to learn (default: found)")
	f.StringVar(&d.options.Product, "product", "", "product `NAME` that says how to read the files")
	f.StringVar(&d.options.Transform, "transform", "", "`SPACE` in which values are taken, identity or log10 (default: by the product or variable)")
	f.Float64SliceVar(&d.validRange, "valid-range", nil, "`LOW,HIGH` in physical units, values outside are rejected (default: by the product or the file)")
	f.StringArrayVar(&d.options.Quality, "quality", nil, "quality `RULE`, such as 'quality_level >= 4'; may be repeated")
	f.StringVar(&d.mask, "mask", "auto", "sea mask: `FILE`, builtin, learned, or auto (the granules' own, else builtin)")
}

func (d *dataFlags) validate() error {
	if len(d.files) == 0 {
		return usageError{errors.New("--data FILE is required")}
	}
	switch len(d.validRange) {
	case 0:
	case 2:
		d.options.Range = &[2]float64{d.validRange[0], d.validRange[1]}
	default:
		return usageError{fmt.Errorf("--valid-range has %d numbers, must be LOW,HIGH", len(d.validRange))}
	}
	if err := d.options.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// dataset is what the files of one grid hold.
type dataset struct {
	series   samples.Series
	granules map[string]string // sha256 by name
	variable string
	name     string         // of the dataset, as products name it
	sample   ingest.Granule // the first one, without its fields; zero: not known what it holds
}

// load reads files of one grid.
func (d *dataFlags) load(ctx context.Context, stderr io.Writer) (dataset, error) {
	all, err := d.loadAll(ctx, stderr)
	if err != nil {
		return dataset{}, err
	}
	if len(all) > 1 {
		return dataset{}, fmt.Errorf("the files are of %d grids, such as %v and %v: use files of one grid", len(all), all[0].series.Grid, all[1].series.Grid)
	}
	return all[0], nil
}

// packSuffix ends the names of files of lacuna pack.
const packSuffix = ".pack"

// loadAll reads the files and returns a dataset for each grid, in the order in
// which the grids come. One that was named and cannot be used is an error: what
// a model was trained on must be what was asked for. One that was found in a
// folder, such as a day of clouds only, is left out with a note.
func (d *dataFlags) loadAll(ctx context.Context, stderr io.Writer) ([]dataset, error) {
	paths, err := daemon.GranuleFiles(d.files...)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no .nc file below %v", d.files)
	}
	isPack := func(path string) bool { return strings.HasSuffix(path, packSuffix) }
	groups, err := d.read(ctx, slices.DeleteFunc(slices.Clone(paths), isPack), stderr)
	if err != nil {
		return nil, err
	}
	var all []dataset
	for _, g := range groups {
		set, err := g.dataset(ctx, d.mask)
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
		return nil, fmt.Errorf("none of %d files below %v can be used", len(paths), d.files)
	}
	return all, nil
}

// granuleGroup is granules of one grid.
type granuleGroup struct {
	reader   *ingest.Reader
	first    ingest.Granule
	fields   []field.Field
	granules map[string]string
}

// read reads granules, a group for each grid.
func (d *dataFlags) read(ctx context.Context, paths []string, stderr io.Writer) ([]*granuleGroup, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	reader, err := newReader()
	if err != nil {
		return nil, err
	}
	var groups []*granuleGroup
	bar := newProgress(stderr, "reading", len(paths))
	defer bar.finish()
	for _, path := range paths {
		g, err := reader.Read(ctx, path, d.options)
		bar.step()
		var bad *ingest.BadGranule
		if errors.As(err, &bad) && !slices.Contains(d.files, path) {
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
		groups[at].fields = append(groups[at].fields, g.Fields...)
	}
	return groups, nil
}

// dataset makes a series of the granules.
func (g *granuleGroup) dataset(ctx context.Context, mask string) (dataset, error) {
	first := g.first
	first.Fields = slices.Clone(g.fields)
	sea, err := fill.SeaMask(ctx, mask, g.reader, first, nil)
	if err != nil {
		return dataset{}, fmt.Errorf("sea mask: %w", err)
	}
	out := dataset{granules: g.granules, variable: first.Source.Variable, name: fill.StandAloneDataset(first), sample: first}
	out.sample.Fields = nil
	out.series, err = samples.New(g.fields, sea, first.Transform)
	return out, err
}

// unpack reads a file of lacuna pack. It knows nothing of where its days come
// from: it is its own granule.
func (d *dataFlags) unpack(path string) (dataset, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return dataset{}, err
	}
	name := filepath.Base(path)
	sum := sha256.Sum256(data)
	out := dataset{
		granules: map[string]string{name: hex.EncodeToString(sum[:])},
		variable: d.options.Variable, name: strings.TrimSuffix(name, packSuffix),
	}
	if out.series, err = pack.Read(bytes.NewReader(data)); err != nil {
		return dataset{}, fmt.Errorf("read %s: %w", path, err)
	}
	return out, nil
}

// packCommand writes a dataset as one small file for machines that have no
// granules, such as one that only lends its GPU. It is hidden: packs are read
// by the same program only.
func packCommand() *cobra.Command {
	var data dataFlags
	var out string
	c := &cobra.Command{
		Use: "pack --data FILE... -o FILE", Short: "write a dataset as one small file", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := data.validate(); err != nil {
				return err
			}
			set, err := data.load(c.Context(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			f, err := renameio.NewPendingFile(out, renameio.WithPermissions(0o644))
			if err != nil {
				return err
			}
			defer func() { _ = f.Cleanup() }() // after a success there is nothing to clean up
			if err := pack.Write(f, set.series); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d days of %v\n", out, len(set.series.Days), set.series.Grid)
			return errors.Join(f.CloseAtomicallyReplace(), err)
		},
	}
	data.add(c.Flags())
	c.Flags().StringVarP(&out, "output", "o", os.DevNull, "`FILE` to write")
	return c
}
