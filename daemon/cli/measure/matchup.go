package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/onboard"
	"lacuna/internal/figure"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/lab/chart"
	"lacuna/pipeline/matchup"

	"github.com/spf13/cobra"
)

// matchupFlags are the command line of lacuna matchup.
type matchupFlags struct {
	insitu, variable, units string
	columns                 matchup.Columns
	window                  matchup.Window
	maxDepth                float64
	picture                 string
	asJSON                  bool
}

func matchupCommand() *cobra.Command {
	var flags matchupFlags
	c := &cobra.Command{
		Use:   "matchup --insitu FILE.csv|nc PRODUCT...",
		Short: "score products against buoys or bottle data",
		Long: `Matchup pairs measurements in the sea with products: each with the cell in which it
lies, or with --radius the nearest one that has a value, of the product nearest in
time. It prints bias, RMSE, a robust spread, correlation, and how many measurements
lie in the 90 % interval of the product, for cells that were observed and cells that
were filled. Differences are product less measurement, in log10 where the product
is.

A platform counts once a day: its measurements of a day are one pair, of medians.
Without a column of platforms, a cell and day are one.

FILE.csv has a header; columns are found by their usual names (time, lat, lon, the
variable; platform and depth where there are), or named by flags. Units stand in the
header, as in 'chl [mg m-3]', or in a second row, as ERDDAP writes them, or are
named; they are converted. FILE.nc has the same as variables: a list, a station, a
track or profiles along time, as Copernicus' in-situ files. A PRODUCT is a file or a folder, of Lacuna or another.

Exit status: 0 done, 1 failed or nothing to compare, 2 usage.`,
		Example: `  lacuna matchup --insitu buoys.csv products/black-sea-chl
  lacuna matchup --insitu bottles.csv --value-column tchla --units ug/l --max-depth 5 products/black-sea-chl
  lacuna matchup --insitu drifters.csv --radius 5 --within 6h --plot drifters.png --json products/gulf-sst`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return cli.Usage(err)
			}
			return flags.run(c, args)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.insitu, "insitu", "", "`FILE` of measurements (required)")
	f.StringVar(&flags.variable, "var", "", "`VARIABLE` of the products (default: found)")
	f.StringVar(&flags.units, "units", "", "`UNITS` of the measurements (default: as the file says, else those of the product)")
	f.Float64Var(&flags.window.RadiusKM, "radius", 0, "how far a cell may be, in `KM`; 0: the measurement lies in it")
	f.DurationVar(&flags.window.Within, "within", 12*time.Hour, "how far a product may be in time, from the middle of what it stands for")
	f.Float64Var(&flags.maxDepth, "max-depth", 10, "`METRES` below which measurements are passed over")
	f.StringVar(&flags.columns.Time, "time-column", "", "`NAME` of the column of times (default: found)")
	f.StringVar(&flags.columns.Lat, "lat-column", "", "`NAME` of the column of latitudes (default: found)")
	f.StringVar(&flags.columns.Lon, "lon-column", "", "`NAME` of the column of longitudes (default: found)")
	f.StringVar(&flags.columns.Value, "value-column", "", "`NAME` of the column of values (default: found)")
	f.StringVar(&flags.columns.Platform, "platform-column", "", "`NAME` of the column of platforms (default: found)")
	f.StringVar(&flags.columns.Depth, "depth-column", "", "`NAME` of the column of depths (default: found)")
	f.StringVar(&flags.picture, "plot", "", "draw the pairs into `FILE.png`")
	f.BoolVar(&flags.asJSON, "json", false, "print JSON")
	return c
}

func (f *matchupFlags) check() error {
	switch {
	case f.insitu == "":
		return errors.New("--insitu FILE is required")
	case f.window.RadiusKM < 0 || f.window.RadiusKM > 500:
		return fmt.Errorf("--radius is %g, must be from 0 to 500 km", f.window.RadiusKM)
	case f.window.Within <= 0:
		return fmt.Errorf("--within is %v, must be positive", f.window.Within)
	case !(f.maxDepth >= 0):
		return fmt.Errorf("--max-depth is %g, must not be negative", f.maxDepth)
	case f.picture != "" && !strings.HasSuffix(f.picture, ".png"):
		return fmt.Errorf("--plot is %q, must end in .png", f.picture)
	}
	return nil
}

// matchupReport is the result as --json prints it.
type matchupReport struct {
	InSitu    string           `json:"insitu"`
	Column    string           `json:"column"`
	Variable  string           `json:"variable"`
	Units     string           `json:"units"`
	Space     string           `json:"space"` // identity or log10: that of bias, RMSE, spread and sigma
	RadiusKM  float64          `json:"radius_km"`
	WithinH   float64          `json:"within_hours"`
	Products  int              `json:"products"` // fields
	Read      int              `json:"measurements"`
	Passed    map[string]int   `json:"passed_over"`
	Pairing   string           `json:"pairing"`
	Scores    []matchup.Scores `json:"scores"`
	Converted string           `json:"converted_from,omitempty"` // units of the measurements
}

func (f *matchupFlags) run(c *cobra.Command, args []string) error {
	paths, err := productFiles(args)
	if err != nil {
		return err
	}
	reader, err := cli.NewReader()
	if err != nil {
		return err
	}
	first, err := readProduct(c.Context(), reader, paths[0], f.variable)
	if err != nil {
		return err
	}
	table, err := f.table(c.Context(), reader, first)
	if err != nil {
		return fmt.Errorf("--insitu %s: %w", f.insitu, err)
	}
	from := cmp.Or(f.units, table.Units)
	obs, changed, err := matchup.Convert(table.Observations, from, first.units)
	if err != nil {
		return fmt.Errorf("--insitu %s: %w", f.insitu, err)
	}
	m := matchup.NewMatcher(obs, f.window, first.transform)
	fields, err := addProducts(c.Context(), reader, paths, first, m, c.ErrOrStderr())
	if err != nil {
		return err
	}
	pairs, passed := m.Pairs()
	r := matchupReport{
		InSitu: filepath.Base(f.insitu), Column: table.Column, Variable: first.variable, Units: first.units, Space: first.transform.String(),
		RadiusKM: f.window.RadiusKM, WithinH: f.window.Within.Hours(), Products: fields,
		Read: len(obs) + sum(table.Passed), Passed: table.Passed, Pairing: "median of a platform, a day and a kind of cell", Scores: matchup.Score(pairs),
	}
	maps.Copy(r.Passed, passed)
	if changed {
		r.Converted = from
	}
	if from == "" {
		fmt.Fprintf(c.ErrOrStderr(), "the units of %s are not told: taken as %s; --units names others\n", table.Column, first.units)
	}
	if len(pairs) == 0 {
		return fmt.Errorf("nothing to compare: of %d measurements %s; look at --radius, --within and the days of the products", r.Read, reasons(r.Passed))
	}
	if f.picture != "" {
		if err := chart.WritePNG(f.picture, scatter(r, pairs)); err != nil {
			return err
		}
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return r.print(c.OutOrStdout())
}

// table reads the measurements of a variable.
func (f *matchupFlags) table(ctx context.Context, reader *ingest.Reader, of product) (matchup.Table, error) {
	if strings.HasSuffix(f.insitu, ".nc") {
		points, err := reader.ReadPoints(ctx, f.insitu)
		if err != nil {
			return matchup.Table{}, err
		}
		return matchup.FromFile(points, of.names, f.columns, f.maxDepth)
	}
	file, err := os.Open(f.insitu)
	if err != nil {
		return matchup.Table{}, err
	}
	defer file.Close()
	return matchup.ReadCSV(file, of.names, f.columns, f.maxDepth)
}

// productFiles are the products below some paths, without members and without
// what hidden folders keep, such as replaced revisions.
func productFiles(args []string) ([]string, error) {
	all, err := onboard.GranuleFiles(args...)
	if err != nil {
		return nil, err
	}
	paths := slices.DeleteFunc(all, func(path string) bool {
		if slices.Contains(args, path) {
			return false
		}
		hidden := strings.Contains(filepath.ToSlash(path), "/.")
		return hidden || strings.HasSuffix(path, "_members.nc")
	})
	if len(paths) == 0 {
		return nil, fmt.Errorf("no product below %s", strings.Join(args, ", "))
	}
	return paths, nil
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// reasons says how many were passed over and why.
func reasons(passed map[string]int) string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(passed)) {
		parts = append(parts, fmt.Sprintf("%d %s", passed[why], why))
	}
	return cmp.Or(strings.Join(parts, ", "), "none was passed over")
}

func (r matchupReport) print(w io.Writer) error {
	var b strings.Builder
	unit := r.Units
	if r.Space == "log10" {
		unit = "decades"
	}
	fmt.Fprintf(&b, "%s of %d fields against %s of %s, product less measurement, in %s\n", r.Variable, r.Products, r.Column, r.InSitu, unit)
	fmt.Fprintf(&b, "%-9s %6s %9s %9s %8s %8s %8s %6s %10s %8s\n", "cells", "n", "platforms", "readings", "bias", "RMSE", "spread", "r", "in 90 %", "sigma")
	for _, s := range r.Scores {
		fmt.Fprintf(&b, "%-9s %6d %9d %9d %8s %8s %8s %6s %10s %8s\n", s.Cells, s.N, s.Platforms, s.Readings,
			measured("%+.3f", s.Bias), measured("%.3f", s.RMSE), measured("%.3f", s.Spread), measured("%.2f", s.Correlation), percent(s.Coverage90), measured("%.3f", s.Sigma))
	}
	fmt.Fprintf(&b, "n counts platforms and days: %s\n", r.Pairing)
	if r.Space == "log10" && r.Scores[0].Bias != nil {
		fmt.Fprintf(&b, "a bias of %+.3f decades is a factor of %.2f\n", *r.Scores[0].Bias, math.Pow(10, *r.Scores[0].Bias))
	}
	if r.Converted != "" {
		fmt.Fprintf(&b, "measurements were converted from %s to %s\n", r.Converted, r.Units)
	}
	if len(r.Passed) > 0 {
		fmt.Fprintf(&b, "of %d measurements passed over: %s\n", r.Read, reasons(r.Passed))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// measured writes a number that may not be there.
func measured(format string, x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf(format, *x)
}

func percent(x *float64) string {
	if x == nil {
		return "-"
	}
	return figure.Percent(*x)
}
