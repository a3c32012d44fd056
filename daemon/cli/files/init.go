package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/fill"
	"lacuna/daemon/intake"
	"lacuna/daemon/onboard"
	"lacuna/daemon/retrain"
	"lacuna/modelstore/starters"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/infer/trial"
	"lacuna/pipeline/ingest"

	"github.com/spf13/cobra"
)

// initFlags are the command line of lacuna init.
type initFlags struct {
	product, dir, url string
	sample            string
	name, out, state  string
	options           ingest.Options
	fill, train, add  bool
	ask, unmeasured   bool
}

func initCommand() *cobra.Command {
	var flags initFlags
	c := &cobra.Command{
		Use:   "init [--dir DIR | --sample FILE | --url URL | --product DATASET]",
		Short: "make a configuration for a dataset of yours",
		Long: `Init looks at the granules of a dataset, measures this machine and writes a
configuration in which every line has its reason above it: how the granules are
read, where they come from and when, and what fills them. It checks what it
wrote and overwrites nothing.

--add puts the dataset at the end of the list of a configuration that is there
(-o FILE), with its comments and its order as they are; a service takes it up
with 'systemctl reload lacuna'. A file that would not be good stays as it was.

--dir names a folder of granules, --sample one granule (its folder is then where
others are expected), --product a dataset of Copernicus Marine, --url an
archive: http, https or ftp, s3://HOST/BUCKET/PREFIX, a dataset of ERDDAP
(.../griddap/ID?VARIABLE), a collection of a STAC API (.../collections/ID) or a
Zarr store (.../NAME.zarr?VARIABLE). With --url or --product, --sample may name
a granule to look at. At a terminal, what is not given is asked for, with a
proposal; else the proposals are taken.

--fill fills the newest granule of the folder at once, --train then trains a
model of the dataset on all of them, which takes hours on a processor and can be
stopped and started again.

Exit status: 0 done, 1 failed (the file is there already, or no granule can be
read), 2 usage, 78 the configuration that was written is not good.`,
		Example: `  lacuna init --dir archive --fill
  lacuna init --sample 20240312_chl.nc --name my-sea -o my-sea.yaml
  lacuna init --product cmems_obs-oc_blk_bgc-plankton_nrt_l3-multi-1km_P1D
  lacuna init --add --dir sst -o /etc/lacuna/lacuna.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			asking := newInterview(c.InOrStdin(), c.ErrOrStderr(), flags.ask)
			if err := flags.settle(asking); err != nil {
				return err
			}
			return flags.run(c, asking)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.dir, "dir", "", "`DIR` where granules appear")
	f.StringVar(&flags.sample, "sample", "", "a granule `FILE` to look at")
	f.StringVar(&flags.url, "url", "", "`URL` of an archive")
	f.StringVar(&flags.product, "product", "", "`DATASET` of Copernicus Marine, or a product name that says how to read the files")
	f.StringVar(&flags.name, "name", "", "`NAME` of the dataset (default: after the folder, product or file)")
	f.StringVar(&flags.options.Variable, "var", "", "`VARIABLE` to fill (default: found)")
	input.AddPart(f, &flags.options)
	f.StringVarP(&flags.out, "output", "o", "lacuna.yaml", "configuration `FILE` to write, or to add to")
	f.StringVar(&flags.state, "state", "var", "`DIR` for state, products and models")
	f.BoolVar(&flags.add, "add", false, "add the dataset to the configuration that is there")
	f.BoolVar(&flags.fill, "fill", false, "fill the newest granule at once")
	f.BoolVar(&flags.train, "train", false, "then train a model of the dataset")
	f.BoolVar(&flags.unmeasured, "unmeasured", false, "do not measure this machine, which takes some seconds")
	f.BoolVar(&flags.ask, "ask", false, "ask, even where standard input is no terminal")
	return c
}

// settle completes the flags by asking, and reports those that contradict each
// other.
func (f *initFlags) settle(asking *interview) error {
	if f.dir == "" && f.sample == "" && f.url == "" && f.product == "" {
		place := asking.text("Where are the granules: a folder, a file, an address, or a dataset of Copernicus Marine?", "")
		switch info, err := os.Stat(place); {
		case place == "":
			return cli.Usage(errors.New("give --dir DIR, --sample FILE, --url URL or --product DATASET"))
		case err == nil && info.IsDir():
			f.dir = place
		case err == nil:
			f.sample = place
		default:
			f.url = place
		}
	}
	if f.dir != "" && f.url != "" {
		return cli.Usage(errors.New("--dir and --url both name an archive: give one of them"))
	}
	if f.train && f.dir == "" && f.sample == "" {
		return cli.Usage(errors.New("--train needs granules on this machine: give --dir DIR or --sample FILE"))
	}
	return nil
}

func (f *initFlags) run(c *cobra.Command, asking *interview) error {
	ctx, stderr := c.Context(), c.ErrOrStderr()
	f.out = asking.text("Write the configuration to which file?", f.out)
	if _, err := os.Lstat(f.out); err == nil && !f.add {
		return fmt.Errorf("%s is there already: --add adds the dataset to it; or choose another name with -o", f.out)
	}
	reader, err := cli.NewReader()
	if err != nil {
		return err
	}
	o := onboard.Onboarding{Now: time.Now(), Options: f.options}
	if o.StateDir, err = filepath.Abs(f.state); err != nil {
		return err
	}
	if o.Archive, err = f.archive(); err != nil {
		return cli.Usage(err)
	}
	if err := f.look(c, reader, &o, asking); err != nil {
		return err
	}
	o.Name = onboard.DatasetName(f.nameOf())
	if f.name == "" {
		o.Name = onboard.DatasetName(asking.text("A short name for the dataset?", o.Name))
	}
	o.Machine = f.machine(ctx, stderr)
	if o.Sample != nil {
		o.Starter = starterNamed(ctx, o.Sample.Granule())
	}
	written := "written"
	if f.add {
		written, err = "has "+o.Name+" now too", f.addTo(c, o)
	} else {
		err = writeNew(f.out, o.Propose())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s %s\n", f.out, written)
	return f.goOn(c, o, asking)
}

// archive returns the archive that flags name.
func (f *initFlags) archive() (intake.Archive, error) {
	switch {
	case f.dir != "":
		return intake.At(f.dir)
	case f.url != "":
		a, err := intake.At(f.url)
		if err == nil && a.Type == "dir" {
			err = fmt.Errorf("%s is no address: name a folder with --dir, a dataset of Copernicus Marine with --product", f.url)
		}
		return a, err
	case f.sample != "" && f.product == "":
		return intake.At(filepath.Dir(f.sample))
	}
	a, err := intake.At(f.product)
	if err == nil && a.Type != "cmems" {
		err = fmt.Errorf("%s is no dataset of Copernicus Marine: where do its granules appear? Give --dir DIR or --url URL", f.product)
	}
	return a, err
}

// look reads the granules that are on this machine, as the product says where
// Lacuna knows it.
func (f *initFlags) look(c *cobra.Command, reader *ingest.Reader, o *onboard.Onboarding, asking *interview) error {
	if o.Options.Product = f.product; o.Options.Validate() != nil {
		o.Options.Product = ""
	}
	files, err := f.files()
	if err != nil || len(files) == 0 {
		return err
	}
	look := func() error {
		return cli.During(c.ErrOrStderr(), "looking at the newest granules", func() (err error) {
			o.Sample, err = onboard.LookAt(c.Context(), reader, files, o.Options)
			return err
		})
	}
	if err = look(); err == nil {
		return nil
	}
	variable := asking.text(fmt.Sprintf("%v\nWhich variable is to be filled?", err), "")
	if variable == "" {
		return err
	}
	o.Options.Variable, f.options.Variable = variable, variable
	return look()
}

// files returns the granules on this machine.
func (f *initFlags) files() ([]string, error) {
	place := f.dir
	if place == "" {
		place = f.sample
	}
	if place == "" {
		return nil, nil
	}
	files, err := onboard.GranuleFiles(place)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no .nc file below %s", place)
	}
	return files, err
}

func (f *initFlags) nameOf() string {
	for _, name := range []string{f.name, f.product, f.dir, f.sample, f.url} {
		if name != "" && name != "." {
			return name
		}
	}
	return "dataset"
}

// machine measures how fast networks run here.
func (f *initFlags) machine(ctx context.Context, stderr io.Writer) onboard.Machine {
	e, err := engine.Open(engine.Auto, engine.Config{}, slog.New(cli.NewConsole(stderr, slog.LevelWarn)))
	if err != nil {
		return onboard.Machine{Missing: "lacuna engines says what is missing"}
	}
	defer e.Finalize()
	m := onboard.Machine{Engine: e.Kind + ", " + retrain.Hardware()}
	if f.unmeasured {
		return m
	}
	cfg := trial.DefaultConfig()
	cfg.Height, cfg.Width, cfg.Days, cfg.Network.Members = 128, 128, 4, 1
	bar := cli.NewProgress(stderr, "measuring this machine", 0)
	report, err := trial.Run(ctx, cfg, infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, func(string) func(int, int) { return bar.Set })
	bar.Finish()
	if err != nil {
		fmt.Fprintf(stderr, "lacuna: this machine could not be measured: %v\n", err)
		return m
	}
	m.Speed = speedOf(report)
	return m
}

// speedOf returns the time for a million cells that a trial with one member
// measured.
func speedOf(r trial.Report) infer.Speed {
	per := func(seconds float64) time.Duration {
		return time.Duration(seconds * 1e6 / float64(max(r.Cells, 1)) * float64(time.Second))
	}
	var s infer.Speed
	for _, row := range r.Rows {
		switch row.Name {
		case string(infer.Fast):
			s.Analysis, s.Look = per(row.Analysis+row.Host), per(row.Look)
		case string(infer.Standard):
			s.Step = per(row.Members) / time.Duration(max(infer.Standard.Recipe(1).ODE.Calls(), 1))
		}
	}
	return s
}

// starterNamed returns the name of the starter that fits a granule; empty: none
// fits.
func starterNamed(ctx context.Context, g ingest.Granule) string {
	all, err := starters.List(ctx)
	if err != nil {
		return ""
	}
	if v, _ := fill.StarterFor(all, g); v != nil {
		return v.ID
	}
	return ""
}

// writeNew writes a file that is not there yet.
func writeNew(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: choose another name with -o, or move it away", path)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
