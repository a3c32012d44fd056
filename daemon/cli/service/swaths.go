package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/swath"
	"lacuna/publish/netcdf"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// binFlags are the flags of lacuna grid with files.
type binFlags struct {
	out     string
	box     []float64
	step    float64
	like    string
	options ingest.Options
}

func (b *binFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&b.out, "output", "o", "", "`DIR` for the binned files")
	f.Float64SliceVar(&b.box, "bbox", nil, "`WEST,SOUTH,EAST,NORTH` of the grid in degrees; west of east across the date line")
	f.Lookup("bbox").DefValue = ""
	f.Float64Var(&b.step, "step", 0.04, "side of a cell in `DEGREES`")
	f.StringVar(&b.like, "like", "", "`FILE` whose grid is taken, instead of --bbox and --step")
	f.StringVar(&b.options.Variable, "var", "", "`VARIABLE` to bin (default: found)")
	f.StringVar(&b.options.Product, "product", "", "product `NAME` that says how to read the files")
	f.StringVar(&b.options.Transform, "transform", "", "`SPACE` in which means are taken, identity or log10 (default: by the product or variable)")
	f.StringVar(&b.options.Group, "group", "", "`GROUP` of the file that is read, with those above it (default: all)")
	f.StringArrayVar(&b.options.Quality, "quality", nil, "quality `RULE`, such as 'quality_level >= 4'; may be repeated")
}

// mostBytes bounds the memory of the days that are being binned.
const mostBytes = 2 << 30

// A binning is the bins of days, in one go through the files.
type binning struct {
	grid field.Grid
	days map[string]*day
}

// A day is the bins of a day, with what its files say of the variable.
type day struct {
	*swath.Bins
	variable swath.Variable
	from     []string
}

func (b *binFlags) run(c *cobra.Command, args []string) error {
	switch {
	case b.out == "":
		return cli.Usage(errors.New("-o DIR is required"))
	case b.like != "" && (len(b.box) > 0 || c.Flags().Changed("step")):
		return cli.Usage(errors.New("--like gives the grid: leave --bbox and --step out"))
	case b.like == "" && len(b.box) != 4:
		return cli.Usage(errors.New("--bbox WEST,SOUTH,EAST,NORTH or --like FILE is required: all files of an archive share a grid"))
	}
	files, err := ncFiles(args)
	if err != nil {
		return err
	}
	reader, err := cli.NewReader()
	if err != nil {
		return err
	}
	grid, err := b.grid(c.Context(), reader)
	if err != nil {
		return err
	}
	work := binning{grid: grid, days: map[string]*day{}}
	bad := 0
	bar := cli.NewProgress(c.ErrOrStderr(), "binning", len(files))
	defer bar.Finish()
	for _, file := range files {
		if err := work.add(c.Context(), reader, file, b.options); err != nil {
			var refused *ingest.BadGranule
			if !errors.As(err, &refused) {
				return err
			}
			bad++
			fmt.Fprintln(c.ErrOrStderr(), err)
		}
		bar.Step()
	}
	bar.Finish()
	if err := work.write(b.out, c); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d files could not be binned", bad, len(files))
	}
	return nil
}

// grid returns the grid to bin to: that of a box, or that of a file.
func (b *binFlags) grid(ctx context.Context, reader *ingest.Reader) (field.Grid, error) {
	if b.like == "" {
		grid, err := swath.NewGrid(b.box[0], b.box[1], b.box[2], b.box[3], b.step)
		if err != nil {
			return grid, cli.Usage(err)
		}
		return grid, nil
	}
	g, err := reader.Read(ctx, b.like, ingest.Options{Variable: b.options.Variable, Group: b.options.Group})
	if err != nil {
		return field.Grid{}, err
	}
	grid := g.Fields[0].Grid
	switch {
	case grid.Plane != nil:
		return grid, fmt.Errorf("the grid of %s is none of latitudes and longitudes, and nothing is binned to such: regrid with cdo remapnn,%s IN.nc OUT.nc", b.like, b.like)
	case grid.Height() < 2 || grid.Width() < 2:
		return grid, fmt.Errorf("the grid of %s is %v: cells have no size there", b.like, grid)
	}
	return grid, nil
}

// ncFiles returns the files of arguments, those of folders by name.
func ncFiles(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			out = append(out, arg)
			continue
		}
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if ext := strings.ToLower(filepath.Ext(path)); err == nil && d.Type().IsRegular() && (ext == ".nc" || ext == ".nc4" || ext == ".h5") {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no .nc file in %s", strings.Join(args, ", "))
	}
	return out, nil
}

// add bins the pixels of a file.
func (w *binning) add(ctx context.Context, reader *ingest.Reader, file string, opt ingest.Options) error {
	g, err := reader.ReadSwath(ctx, file, opt)
	if err != nil {
		return err
	}
	for k, f := range g.Fields {
		date := f.Time.UTC().Format("20060102")
		d := w.days[date]
		if d == nil {
			if (len(w.days)+1)*w.grid.Len()*swath.Bytes > mostBytes {
				return fmt.Errorf("bin %s: the %d days before it take all of the memory: give fewer files at a time, those of a day together", file, len(w.days))
			}
			d = &day{Bins: swath.NewBins(w.grid, g.Transform), variable: variableOf(g.Source)}
			w.days[date] = d
		}
		if v := variableOf(g.Source); v.Name != d.variable.Name || v.Units != d.variable.Units {
			return &ingest.BadGranule{File: g.Name, Problem: fmt.Sprintf("it has %s in %q, and the other files of %s have %s in %q", v.Name, v.Units, date, d.variable.Name, d.variable.Units), Remedy: "bin it apart, or set --var"}
		}
		var errs []float32
		if g.Errors != nil {
			errs = g.Errors[k]
		}
		if d.Add(f, errs) > 0 {
			d.from = append(d.from, g.Name)
		}
	}
	return nil
}

func variableOf(s ingest.Source) swath.Variable {
	v, _ := s.Var(s.Variable)
	out := swath.Variable{Name: v.Name}
	for name, to := range map[string]*string{"standard_name": &out.StandardName, "long_name": &out.LongName, "units": &out.Units} {
		for _, a := range v.Attrs {
			if text, ok := a.Value.(string); ok && a.Name == name {
				*to = text
			}
		}
	}
	return out
}

// write writes a file a day that has a pixel on the grid, and prints their paths.
func (w *binning) write(out string, c *cobra.Command) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, date := range slices.Sorted(maps.Keys(w.days)) {
		d := w.days[date]
		if len(d.from) == 0 {
			fmt.Fprintf(c.ErrOrStderr(), "%s: none of its pixels lies in the box\n", date)
			continue
		}
		at, err := time.Parse("20060102", date)
		if err != nil {
			return err
		}
		path := filepath.Join(out, date+"_"+d.variable.Name+"_l3.nc")
		slices.Sort(d.from)
		file := d.File(d.variable, at, "binned by lacuna grid from "+strings.Join(slices.Compact(d.from), ", "))
		if err := netcdf.Write(path, netcdf.File(file)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.OutOrStdout(), path); err != nil {
			return err
		}
	}
	return nil
}
