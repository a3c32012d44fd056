package fill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/version"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/products"
	"lacuna/pipeline/skill"
	"lacuna/publish/netcdf"
)

// Job is a granule to be analysed, with its neighbours, sea mask and settings.
type Job struct {
	Dataset string
	Granule ingest.Granule
	History []ingest.Granule // neighbours in time; those on another grid are left out
	Sea     field.Mask
	Seen    field.Mask // cells that were observed on any known day; nil: too few are known to tell
	SeaMask string     // where the sea mask comes from, for the product
	Fill    infer.Config
	Model   *infer.Model  // for the method model; else nil
	Scaling *LocalScaling // for a model that was trained elsewhere; else nil
	// Widening comes from earlier days that the same method filled and that were scored.
	Widening skill.Widening
	// Trust says how far the model is followed; nil: all the way. Where it is not,
	// Interpolated is the widening of optimal interpolation.
	Trust        *skill.Trust
	Interpolated skill.Widening
	Revision     int
	Created      time.Time // time of the revision
	// When upstream published the granule, and when it was fetched and filled; zero:
	// not known.
	Published, Fetched, Filled time.Time
	Credits                    netcdf.Credits
	Layout                     netcdf.Layout // of the product's file; empty: that of the input

	// Constants are those of the dataset, for optimal interpolation; nil: the
	// defaults.
	Constants *infer.Constants
	// Centre is the mean of the model that erred less on scored days of the dataset;
	// empty: too few were scored, and it is that of the version.
	Centre impute.Centre

	// Backlog says that it is one of many old granules: as where it is only scored, a
	// model that is not followed draws no members for it.
	Backlog bool

	// Scored says that it is only scored: nothing that was learned from its last
	// field, or from a later one, may fill it. What the model and optimal
	// interpolation say by themselves is kept apart in the analyses.
	Scored bool

	// Spend says that nobody needs History afterwards: its fields are let go of as soon
	// as the analysis has seen them, and have no values any more.
	Spend bool

	Screened Screened // what was taken out of the granule before

	// Explained is what covariates say of its fields, wherever Constants are used, and
	// what a model sees of them.
	Explained Explained
}

// Outcome is a product with its coverage and its analyses.
type Outcome struct {
	Product         netcdf.Product
	Observed, After float64 // share of the sea with a value, before and after filling

	Analyses []infer.Analysis // one a field of the granule, in their order
	Members  [][]float32      // that the settings ask for, each with all fields of the granule
	Scored   int              // number of scored days by which the uncertainty is calibrated
	Follows  infer.Tier       // the better tier that is to supersede this one; empty: there is none
	Note     string           // why the analysis is poorer than it could be; empty: it is not
}

// Analyse fills the gaps of a granule and describes the product. progress, if
// not nil, is called as the work gets on.
func Analyse(ctx context.Context, job Job, progress func(done, total int)) (Outcome, error) {
	if job.Fill.Step == 0 {
		job.Fill.Step = StepOf(job.Granule, job.History)
	}
	if (job.Backlog || job.Scored) && job.Trust != nil && job.Trust.Weight == 0 {
		job.Fill.Network.Tier = infer.Fast
	}
	if err := CheckLayout(job.Granule, job.Layout); err != nil {
		return Outcome{}, err
	}
	filler, err := infer.New(job.Fill, job.Model)
	if err != nil {
		return Outcome{}, err
	}
	g := job.Granule
	history, inputs := neighbours(job)
	scene := infer.Scene{
		Frames: g.Fields, Rejected: g.Rejected, Errors: g.Errors, History: history, Spend: job.Spend, Sea: job.Sea, Seen: job.Seen, Transform: g.Transform,
		Ice: job.Screened.Ice, FillIce: job.Screened.FillIce,
		Widening: job.Widening, Constants: job.Constants, Drift: job.Explained.Drift, Covariates: job.Explained.Maps, Centre: job.Centre,
	}
	if job.Scaling != nil {
		scene.Scaling = &job.Scaling.Scaling
	}
	calibrated := job.Widening.Days
	if job.Trust != nil {
		scene.Trust = &infer.Trust{Weight: job.Trust.Weight, Widening: job.Interpolated, Apart: job.Scored}
		if job.Trust.Weight == 0 {
			calibrated = job.Interpolated.Days
		}
	}
	if job.Spend {
		history = job.forget(history)
	}
	analyses, err := filler.Fill(ctx, scene, progress)
	if err != nil {
		return Outcome{}, fmt.Errorf("analyse %s: %w", g.Name, err)
	}
	product := describe(job, analyses)
	product.Inputs = inputs
	job.Explained.tell(&product)
	product.Windows = windows(g.Fields, history, job.Fill.Past(), job.Fill.Future())
	product.Mode, product.CalibrationDays = mode(g.Fields, product.Windows), calibrated
	product.Step = cmp.Or(seriesStep(field.Times(slices.Concat(g.Fields, history))), declaredStep(g.Source.Attrs))
	before, after := coverage(analyses, job.Sea)
	return Outcome{
		Product: product, Observed: before, After: after, Analyses: analyses, Members: members(analyses, job.Fill.Members),
		Scored: calibrated, Note: analyses[0].Note, Follows: analyses[len(analyses)-1].Sampling.Follows,
	}, nil
}

// StepOf returns the step of the series that a granule and its neighbours make;
// 0: not known.
func StepOf(g ingest.Granule, history []ingest.Granule) time.Duration {
	times := field.Times(g.Fields)
	for _, h := range history {
		if h.Fields[0].Grid.Same(g.Fields[0].Grid) {
			times = append(times, field.Times(h.Fields)...)
		}
	}
	return infer.StepOf(times)
}

// neighbours returns the fields of the job's history inside its window, and the
// files that the product is made from.
func neighbours(job Job) ([]field.Field, []netcdf.Input) {
	g := job.Granule
	var inputs []netcdf.Input
	if g.SHA256 != "" { // else no granule exists, see Absent
		inputs = append(inputs, netcdf.Input{Name: g.Name, SHA256: g.SHA256, Role: netcdf.RoleTarget})
	}
	first, last := field.Span(g.Fields)
	from, to := first.Add(-job.Fill.Past()), last.Add(job.Fill.Future())
	var fields []field.Field
	for _, h := range job.History {
		if h.SHA256 == g.SHA256 || !h.Fields[0].Grid.Same(g.Fields[0].Grid) {
			continue
		}
		used := false
		for _, f := range h.Fields {
			if !f.Time.Before(from) && !f.Time.After(to) {
				fields, used = append(fields, f), true
			}
		}
		if used {
			inputs = append(inputs, netcdf.Input{Name: h.Name, SHA256: h.SHA256, Role: "context"})
		}
	}
	return fields, inputs
}

// forget takes the values from the history, and returns fields of it without theirs.
func (job Job) forget(fields []field.Field) []field.Field {
	for _, h := range job.History {
		for i := range h.Fields {
			if h.SHA256 != job.Granule.SHA256 {
				h.Fields[i].Values = nil
			}
		}
	}
	fields = slices.Clone(fields)
	for i := range fields {
		fields[i].Values = nil
	}
	return fields
}

// Method returns a method in words; empty for an unknown one.
func Method(name string) string { return methodPhrase[name] }

var methodPhrase = map[string]string{
	"oi":              "optimal interpolation in space and time",
	"persistence":     "persistence of the last observation",
	"climatology":     "mean map of the days around",
	infer.MethodAuto:  "the model of the dataset, else optimal interpolation in space and time with a starter model as far as scored days support it",
	infer.MethodModel: "a neural network that was trained on gappy maps of the same dataset, upon optimal interpolation in space and time",
}

// CheckLayout returns a *ingest.BadGranule where a layout has no place for the
// variable of a granule.
func CheckLayout(g ingest.Granule, l netcdf.Layout) error {
	p := Outline(Job{Granule: g, Layout: l})
	wrong := (*netcdf.LayoutError)(nil)
	if err := p.CheckLayout(); errors.As(err, &wrong) {
		return &ingest.BadGranule{File: g.Name, Problem: fmt.Sprintf("the layout %s has no place for it: %s", wrong.Layout, wrong.Why), Remedy: wrong.Remedy()}
	}
	return nil
}

// Outline describes the product of a job before its analysis.
func Outline(job Job) netcdf.Product {
	g := job.Granule
	p := netcdf.Product{
		Source: SourceFile(g.Source), Variable: g.Source.Variable, Space: g.Transform.String(), Layout: job.Layout,
		Dataset: job.Dataset, Method: methodPhrase[job.Fill.Method], Model: job.Fill.Method,
		Revision: job.Revision, Created: job.Created, Version: version.String(), Bounds: g.Bounds,
		Published: job.Published, Fetched: job.Fetched, Filled: job.Filled, Credits: job.Credits, SeaMask: job.SeaMask,
	}
	for _, product := range products.All() {
		if product.Name == g.Product {
			p.Title, p.StandardName, p.Units = product.Title+", gaps filled", product.StandardName, product.Units
		}
	}
	return p
}

func describe(job Job, analyses []infer.Analysis) netcdf.Product {
	g, p := job.Granule, Outline(job)
	if job.Model != nil {
		p.Model, p.Seed = job.Model.Name(), job.Fill.Network.Seed
	}
	if job.Scaling != nil {
		p.Method = fmt.Sprintf("%s, upon %s", elsewhere(job.Scaling), methodPhrase["oi"])
	}
	job.tellTrust(&p)
	p.Sampling = samplingOf(analyses)
	p.Tests = job.Screened.Tests.String()
	for _, name := range job.Screened.Counts.Names() {
		p.Refused = append(p.Refused, netcdf.Refusal{Test: name, Pixels: job.Screened.Counts[name]})
	}
	p.Caveats, p.SeaIce, p.IcePercent = job.caveats(), job.Screened.SeaIce, job.Screened.IcePercent
	if text := job.Screened.iceCaveat(); text != "" {
		p.Caveats = append(p.Caveats, text)
	}
	for i, a := range analyses {
		p.Times = append(p.Times, g.Fields[i].Time)
		p.Value, p.Sigma = append(p.Value, a.Value...), append(p.Sigma, a.Sigma...)
		p.Lower, p.Upper = append(p.Lower, a.Lower...), append(p.Upper, a.Upper...)
		p.Flags = append(p.Flags, a.Flags...)
	}
	p.Extras = extras(analyses)
	return p
}

// extras returns the details of a granule's analyses as variables of its product.
// The members are left out: they would make it many times as large, and have a
// file of their own.
func extras(analyses []infer.Analysis) []netcdf.Extra {
	distance := netcdf.Extra{
		Suffix: "distance_km", LongName: "distance to the nearest observation of the same field", Units: "km",
		Comment: "0 where observed; on the grid, as cells times its step",
	}
	days := netcdf.Extra{
		Suffix: "distance_days", LongName: "time to the nearest observation of the same pixel", Units: "day",
		Comment: "0 where observed; earlier or later, within the days that the analysis looked at",
	}
	reliability := netcdf.Extra{
		Suffix: "reliability", LongName: "share of the training draws in which the pixel was to be reconstructed", Units: "1",
		Comment: "a heuristic, and no uncertainty: where it is low, the model had little to learn from; 0 is flagged as NOT_RECONSTRUCTIBLE",
	}
	known := false
	for _, a := range analyses {
		if a.Details == nil {
			return nil
		}
		distance.Values = append(distance.Values, a.Details.DistanceKM...)
		days.Values = append(days.Values, a.Details.DistanceDays...)
		share := a.Details.Reliability
		if known = known || share != nil; share == nil {
			share = slices.Repeat([]float32{field.NaN()}, len(a.Flags))
		}
		reliability.Values = append(reliability.Values, share...)
	}
	for i, km := range distance.Values {
		if math.IsInf(float64(km), 1) { // nothing was observed that day
			distance.Values[i] = field.NaN()
		}
	}
	if !known {
		return []netcdf.Extra{distance, days}
	}
	return []netcdf.Extra{distance, days, reliability}
}

// coverage returns the shares of the sea with a value, before and after filling.
// Observations on what the mask calls land do not count: a lake that is land to
// its mask would be covered without a gap filled. Nor does sea under ice that is not
// filled.
func coverage(analyses []infer.Analysis, sea field.Mask) (before, after float64) {
	var cells, observed, filled int
	for _, a := range analyses {
		for i, flags := range a.Flags {
			if sea != nil && !sea[i] || flags&infer.SeaIce != 0 && flags&infer.NotReconstructible != 0 {
				continue
			}
			cells++
			switch {
			case flags&infer.Interpolated != 0:
				filled++
			case infer.Observed(flags):
				observed++
			}
		}
	}
	if cells == 0 {
		return 0, 0
	}
	return float64(observed) / float64(cells), float64(observed+filled) / float64(cells)
}

// ProductName returns the name of the product of a granule, without ending.
func ProductName(granule string) string {
	return plainName(path.Base(granule)) + "_l4"
}

// StandAloneDataset returns the name of the dataset in the product of a single
// file: its producer's product where that is known, else the file's own name.
func StandAloneDataset(g ingest.Granule) string {
	if g.Product != "" {
		return g.Product
	}
	return plainName(g.Name)
}

// plainName returns the name of a file without its ending, that of a packed Zarr
// store too.
func plainName(name string) string {
	name = strings.TrimSuffix(name, path.Ext(name))
	return strings.TrimSuffix(name, ".zarr")
}

// SourceFile returns the part of a granule that its product carries over.
func SourceFile(s ingest.Source) netcdf.File {
	return netcdf.File{Dims: s.Dims, Vars: s.Vars, Attrs: s.Attrs}
}
