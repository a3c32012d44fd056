package files

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/feed"
	"lacuna/internal/convert"
	"lacuna/pipeline/field"
	"lacuna/pipeline/simulate"

	"github.com/spf13/cobra"
)

type simulateFlags struct {
	out, truth, pictures string
	grid                 feed.Size
	start                string
	cfg                  simulate.Config
	companion            string
	correlation          float64
}

func simulateCommand() *cobra.Command {
	var flags simulateFlags
	c := &cobra.Command{
		Use:   "simulate -o DIR --days N",
		Short: "make plausible gappy granules with a known truth",
		Long: `Simulate writes granules in the file layout of a Copernicus Marine product: an
invented ocean of eddies and fronts on a real coastline, seen through drifting
clouds and along swaths. The same seed gives the same files. It is for demos and
tests, and never a substitute for real data.

Products:
` + simulateProducts(),
		Example: "  lacuna simulate -o archive --days 30 --truth truth --pictures png",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case flags.out == "":
				return cli.Usage(errors.New("-o DIR is required"))
			case flags.cfg.Days < 1:
				return cli.Usage(fmt.Errorf("--days is %d, must be at least 1", flags.cfg.Days))
			case !(math.Abs(flags.correlation) <= 1):
				return cli.Usage(fmt.Errorf("--correlation is %g, must be -1 to 1", flags.correlation))
			}
			return flags.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVarP(&flags.out, "output", "o", "", "`DIR` for the granules (required)")
	f.IntVar(&flags.cfg.Days, "days", 30, "number of days")
	f.Var(&flags.grid, "grid", "size of the grid; default: one fit for a demo")
	f.StringVar((*string)(&flags.cfg.Mapping), "grid-mapping", "", "`NAME` of another grid for the same sea: "+mappings())
	f.StringVar(&flags.cfg.Product, "product", "blk-chl", "product `NAME` or dataset id")
	f.Uint64Var(&flags.cfg.Seed, "seed", 1, "another seed is another ocean")
	f.Float64Var(&flags.cfg.CloudBias, "cloud-bias", 0, "standard deviations cloudier over water one above the day's mean: gaps that are not missing at random")
	f.IntVar(&flags.cfg.Sensor.Number, "sensor", 0, "`NUMBER` of another sensor over the same ocean, 1 to 3, for a dataset with several sources")
	f.Float64Var(&flags.cfg.Sensor.Bias, "sensor-bias", 0, "what that sensor reads too much; of chlorophyll, in powers of ten")
	f.Float64Var(&flags.cfg.Sensor.Noise, "sensor-noise", 0, "standard deviation of its noise beside the usual one; of chlorophyll, in powers of ten")
	f.StringVar(&flags.start, "start", "", "first `DAY`, YYYY-MM-DD")
	f.StringVar(&flags.truth, "truth", "", "also write the complete fields into `DIR`")
	f.StringVar(&flags.companion, "covariate", "", "also write a temperature without gaps, on a grid half as fine, into `DIR`: a file a day, for --covariate of fill and evaluate")
	f.Float64Var(&flags.correlation, "correlation", 0.8, "of its anomalies with those of the truth, -1 to 1; 0: it knows nothing of it")
	f.StringVar(&flags.pictures, "pictures", "", "also write a PNG of every day, seen and truth side by side, into `DIR`")
	return c
}

func mappings() string {
	return strings.Join(convert.Each(simulate.Mappings, func(m simulate.Mapping) string { return string(m) }), ", ")
}

func simulateProducts() string {
	var b strings.Builder
	for _, p := range simulate.Products() {
		fmt.Fprintf(&b, "  %-10s %s\n", p.Name, p.Title)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (f simulateFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	f.cfg.Height, f.cfg.Width = f.grid.Height, f.grid.Width
	if f.start != "" {
		start, err := time.Parse(time.DateOnly, f.start)
		if err != nil {
			return cli.Usage(fmt.Errorf("--start is %q, must be a day like 2024-03-01", f.start))
		}
		f.cfg.Start = start
	}
	world, err := simulate.New(f.cfg)
	if err != nil {
		return cli.Usage(err)
	}
	for _, dir := range []string{f.out, f.truth, f.pictures, f.companion} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	bar := cli.NewProgress(stderr, "simulating", f.cfg.Days)
	defer bar.Finish()
	// The last version of every day: an archive after all deliveries.
	last := map[int]simulate.Delivery{}
	for _, d := range world.Schedule() {
		last[d.Day] = d
	}
	for day := range f.cfg.Days {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.writeCompanion(world, day); err != nil {
			return err
		}
		d, ok := last[day]
		if !ok {
			continue
		}
		if err := f.writeDay(world, d, stdout); err != nil {
			return err
		}
		bar.Step()
	}
	return nil
}

// writeCompanion writes the covariate of a day, where one is asked for.
func (f simulateFlags) writeCompanion(world *simulate.World, day int) error {
	if f.companion == "" {
		return nil
	}
	g, err := world.Companion(day, f.correlation)
	if err != nil {
		return err
	}
	return feed.Write(filepath.Join(f.companion, g.Name), g)
}

func (f simulateFlags) writeDay(world *simulate.World, d simulate.Delivery, stdout io.Writer) error {
	g := world.Granule(d)
	path := filepath.Join(f.out, g.Name)
	if err := feed.Write(path, g); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, path); err != nil {
		return err
	}
	if f.truth != "" {
		if err := feed.Write(filepath.Join(f.truth, g.Name), world.TruthGranule(d.Day)); err != nil {
			return err
		}
	}
	if f.pictures == "" {
		return nil
	}
	return writePicture(filepath.Join(f.pictures, strings.TrimSuffix(g.Name, ".nc")+".png"), world.Product(), g.Seen, world.Day(d.Day).Truth)
}

// writePicture writes fields side by side as one PNG.
func writePicture(path string, p simulate.Product, fields ...field.Field) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	const gutter = 8 // pixels between two fields
	grid := fields[0].Grid
	sheet := image.NewRGBA(image.Rect(0, 0, len(fields)*(grid.Width()+gutter)-gutter, grid.Height()))
	for i, f := range fields {
		at := image.Pt(i*(grid.Width()+gutter), 0)
		picture := simulate.Render(f, p.Low, p.High, p.Log)
		draw.Draw(sheet, picture.Bounds().Add(at), picture, image.Point{}, draw.Src)
	}
	return png.Encode(file, sheet)
}
