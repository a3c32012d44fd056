package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"lacuna/daemon"
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
	files   []string
	options ingest.Options
	mask    string
}

func (d *dataFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&d.files, "data", nil, "`FILE|DIR` with granules of one dataset; may be repeated (required)")
	f.StringVar(&d.options.Variable, "var", "", "`VARIABLE` to learn (default: found)")
	f.StringVar(&d.options.Product, "product", "", "product `NAME` that says how to read the files")
	f.StringArrayVar(&d.options.Quality, "quality", nil, "quality `RULE`, such as 'quality_level >= 4'; may be repeated")
	f.StringVar(&d.mask, "mask", "auto", "sea mask: `FILE`, builtin, learned, or auto (the granules' own, else builtin)")
}

func (d *dataFlags) validate() error {
	if len(d.files) == 0 {
		return usageError{errors.New("--data FILE is required")}
	}
	if err := d.options.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// dataset is what the files hold.
type dataset struct {
	series   samples.Series
	granules map[string]string // sha256 by name
	variable string
	name     string // of the dataset, as products name it
}

// load reads the files. One that was named and cannot be used is an error: what
// a model was trained on must be what was asked for. One that was found in a
// folder, such as a day of clouds only, is left out with a note.
func (d *dataFlags) load(ctx context.Context, stderr io.Writer) (dataset, error) {
	paths, err := expand(d.files)
	if err != nil {
		return dataset{}, err
	}
	if len(paths) == 0 {
		return dataset{}, fmt.Errorf("no .nc file below %v", d.files)
	}
	reader, err := newReader()
	if err != nil {
		return dataset{}, err
	}
	out := dataset{granules: map[string]string{}}
	var first ingest.Granule
	var fields []field.Field
	bar := newProgress(stderr, "reading", len(paths))
	for _, path := range paths {
		g, err := reader.Read(ctx, path, d.options)
		bar.step()
		var bad *ingest.BadGranule
		if errors.As(err, &bad) && !slices.Contains(d.files, path) {
			fmt.Fprintf(stderr, "lacuna: left out: %v\n", err)
			continue
		}
		if err != nil {
			bar.finish()
			return dataset{}, err
		}
		if len(fields) == 0 {
			first = g
		}
		out.granules[g.Name] = g.SHA256
		fields = append(fields, g.Fields...)
	}
	bar.finish()
	if len(fields) == 0 {
		return dataset{}, fmt.Errorf("none of %d files below %v can be used", len(paths), d.files)
	}
	first.Fields = append(first.Fields[:0:0], fields...)
	sea, err := daemon.SeaMask(ctx, d.mask, reader, first, nil)
	if err != nil {
		return dataset{}, fmt.Errorf("sea mask: %w", err)
	}
	out.variable, out.name = first.Source.Variable, daemon.StandAloneDataset(first)
	out.series, err = samples.New(fields, sea, first.Transform)
	return out, err
}

// packCommand writes a dataset as one small file for machines without netCDF.
// It is hidden: only the programs that measure on such a machine read it.
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
