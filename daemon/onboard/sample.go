package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/fill"
	"lacuna/internal/zarr"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/products"
)

// Sample describes the granules of a new dataset.
type Sample struct {
	Files, Read int    // number of files, and of those that were read
	Example     string // name of the newest file that was read
	Newest      time.Time
	Days        int           // estimated number of days in all files
	Step        time.Duration // time from one field to the next; 0: only one was seen

	Variable, Units, Product string
	Transform                field.Transform
	Range                    [2]float64 // valid range
	Quality                  []string
	Grid                     field.Grid
	SeaMask                  string // kind of mask that serves: granule, builtin or learned
	Notes                    []string

	Values             field.Stats // statistics of all observed values
	Coverage           float64     // mean share of the sea that was observed
	Rejected           int         // values that range or quality refused
	Skewness, LogSkew  float64     // skewness of the values and of their logarithms; NaN: there are no logarithms
	granule            ingest.Granule
	unreadable, others int // files that could not be read; files on other grids
	clouded            int // files in which nothing was observed
}

// Granule returns the newest granule of the sample.
func (s *Sample) Granule() ingest.Granule { return s.granule }

// sampleFiles is the number of files in a sample: enough to measure for how many
// days anomalies last, and read in seconds.
const sampleFiles = 15

// LookAt reads the newest files, by their names, and describes them. Files that
// cannot be read are counted; if none can be read, the error is that of the
// newest.
func LookAt(ctx context.Context, reader *ingest.Reader, files []string, options ingest.Options) (*Sample, error) {
	s := &Sample{Files: len(files)}
	var granules []ingest.Granule
	var first error
	newest := slices.SortedStableFunc(slices.Values(files), func(a, b string) int {
		return strings.Compare(filepath.Base(b), filepath.Base(a)) // most names have the day in them
	})
	for _, file := range newest[:min(sampleFiles, len(newest))] {
		g, err := reader.Read(ctx, file, options)
		var bad *ingest.BadGranule
		switch {
		case errors.As(err, &bad):
			s.unreadable++
			first = cmp.Or(first, err)
		case err == nil && g.Empty(): // a day under cloud: filled later, but it shows no values
			s.clouded++
			first = cmp.Or[error](first, &ingest.BadGranule{
				File: g.Name, Problem: "it holds no observation", Remedy: "give files of clearer days, or another variable, valid_range or quality",
			})
		case err != nil:
			return nil, err
		case len(granules) > 0 && !g.Fields[0].Grid.Same(granules[0].Fields[0].Grid):
			s.others++
		default:
			granules = append(granules, g)
		}
	}
	if len(granules) == 0 {
		return nil, first
	}
	sea, err := fill.SeaMask(ctx, fill.SeaAuto, reader, granules[0], granules[1:])
	if err != nil {
		return nil, err
	}
	s.describe(granules[0], options)
	s.SeaMask = sea.Kind
	s.measure(granules, sea.Mask)
	return s, nil
}

// describe copies the findings of the reader.
func (s *Sample) describe(g ingest.Granule, options ingest.Options) {
	s.granule, s.Example = g, g.Name
	s.Variable, s.Product, s.Transform, s.Notes = g.Source.Variable, g.Product, g.Transform, g.Notes
	s.Grid = g.Fields[0].Grid
	if v, ok := g.Source.Var(s.Variable); ok {
		for _, a := range v.Attrs {
			if text, isText := a.Value.(string); isText && a.Name == "units" {
				s.Units = text
			}
		}
	}
	p := products.Named(s.Product)
	s.Quality = p.Quality
	if len(options.Quality) > 0 {
		s.Quality = options.Quality
	}
	s.Range = p.RangeIn(s.Units)
	if options.Range != nil {
		s.Range = *options.Range
	}
}

// measure computes the figures for the reasons.
func (s *Sample) measure(granules []ingest.Granule, sea field.Mask) {
	var fields []field.Field
	var values [][]float32
	days := map[string]bool{}
	for _, g := range granules {
		for i, f := range g.Fields {
			f.Sea = sea
			_, _, share := f.Coverage()
			s.Coverage += share
			if g.Rejected != nil && g.Rejected[i] != nil {
				s.Rejected += g.Rejected[i].Count()
			}
			fields, values = append(fields, f), append(values, f.Values)
			days[f.Time.UTC().Format(time.DateOnly)] = true
			if f.Time.After(s.Newest) {
				s.Newest = f.Time
			}
		}
	}
	s.Read = len(granules)
	s.Days = len(days) * s.Files / max(s.Read+s.unreadable+s.others, 1) // a clouded file has as many days as the others
	s.Coverage /= float64(len(fields))
	s.Values = field.Summarise(values...)
	s.Skewness, s.LogSkew = skewness(values, nil), skewness(values, func(v float64) float64 { return math.Log10(v) })
	slices.SortFunc(fields, func(a, b field.Field) int { return a.Time.Compare(b.Time) })
	s.Step = usualStep(fields)
	if s.Range == ([2]float64{}) { // no known limits: the observed range, with its own width added on both sides
		wide := s.Values.Max - s.Values.Min
		s.Range = [2]float64{s.Values.Min - wide, s.Values.Max + wide}
		if s.Transform.Log10 {
			s.Range[0] = float64(s.Transform.Floor)
		}
	}
}

// skewness returns the third standardised moment of the values, after of where
// that is not nil; NaN where of gives NaN for any of them.
func skewness(values [][]float32, of func(float64) float64) float64 {
	each := func(yield func(float64)) {
		for _, vs := range values {
			for _, v := range vs {
				x := float64(v)
				if math.IsNaN(x) {
					continue
				}
				if of != nil {
					x = of(x)
				}
				yield(x)
			}
		}
	}
	n, mean := 0.0, 0.0
	each(func(x float64) { n++; mean += x })
	mean /= n
	var m2, m3 float64
	each(func(x float64) { d := x - mean; m2 += d * d; m3 += d * d * d })
	if m2 == 0 {
		return math.NaN()
	}
	return m3 / n / math.Pow(m2/n, 1.5)
}

// usualStep returns the median time from one field to the next, to the hour.
func usualStep(fields []field.Field) time.Duration {
	var steps []time.Duration
	for i := 1; i < len(fields); i++ {
		if d := fields[i].Time.Sub(fields[i-1].Time); d > 0 {
			steps = append(steps, d)
		}
	}
	if len(steps) == 0 {
		return 0
	}
	slices.Sort(steps)
	return steps[len(steps)/2].Round(time.Hour)
}

// GranuleFiles returns the named files, and the NetCDF files and Zarr stores
// below the named folders in order of their paths.
func GranuleFiles(names ...string) ([]string, error) {
	var files []string
	for _, name := range names {
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			switch {
			case d.IsDir() && zarr.IsStore(path):
				files = append(files, path)
				return fs.SkipDir
			case !d.IsDir() && (path == name || strings.HasSuffix(path, ".nc") || strings.HasSuffix(path, ".zarr.zip")):
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("find granules: %w", err)
		}
	}
	return files, nil
}
