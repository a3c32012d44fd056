package tables

import (
	"context"
	"fmt"
	"image"
	"math"
	"path/filepath"
	"strings"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/lab/chart"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/skill"
)

// draw writes the pictures of the first seed: one of each kind for all rows if
// they fit on it, else one for each row.
func (r *run) draw(ctx context.Context, results evaluate.Results) error {
	title := fmt.Sprintf("table %s, %s", results.Table, results.Mode) // names of datasets are too long for a diagram
	rows := r.firstSeeds()
	pictures := map[string]image.Image{
		"distance.png":    chart.ErrorByDistance(chart.Diagram{Title: "Error and distance: " + title, XLabel: "distance to the nearest observation, cells", YLabel: "MSE, units of variance", Curves: distanceCurves(rows)}),
		"reliability.png": chart.Reliability(chart.Diagram{Title: "Intervals: " + title, XLabel: "nominal probability", YLabel: "share of truths inside", Curves: coverageCurves(rows)}),
	}
	if curves := spectrumCurves(rows); len(curves) > 0 {
		pictures["spectra.png"] = chart.Spectra(chart.Diagram{Title: "Spectra: " + title, XLabel: "wavelength, cells", YLabel: "power, units of variance", Curves: curves})
	}
	for _, e := range rows {
		if h := rankHistogram(e); h != nil {
			pictures["rank-"+fileName(e.row.Name)+".png"] = h.Draw()
		}
		sheet, err := r.reconstruction(e)
		if err != nil {
			return err
		}
		pictures["map-"+fileName(e.row.Name)+".png"] = sheet.Draw()
	}
	sheet, err := r.comparison(rows)
	if err != nil {
		return err
	}
	pictures["maps.png"] = sheet.Draw()
	if sheet := r.maskSheet(rows); len(sheet.Panels) > 0 {
		pictures["anchors.png"] = sheet.Draw()
	}
	queries, err := r.queries(ctx)
	if err != nil {
		return err
	}
	if queries != nil {
		pictures["query.png"] = queries.Draw()
	}
	for name, picture := range pictures {
		if err := chart.WritePNG(filepath.Join(r.job.Folder, name), picture); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) firstSeeds() []entry {
	var out []entry
	for _, e := range r.entries {
		if e.seed == 1 {
			out = append(out, e)
		}
	}
	return out
}

// fileName returns a row's name without characters that file systems refuse.
func fileName(name string) string { return strings.NewReplacer(":", "-", "/", "-").Replace(name) }

func distanceCurves(rows []entry) []chart.Curve {
	var out []chart.Curve
	for _, e := range rows {
		c := chart.Curve{Name: e.row.Name}
		for _, d := range e.record.Verdict.Summary.ByDistance {
			if d.MSEIn == nil { // too few days at this distance for an interval
				continue
			}
			c.X, c.Y = append(c.X, d.Mean), append(c.Y, d.MSE)
			c.Low, c.High = append(c.Low, d.MSEIn.Low), append(c.High, d.MSEIn.High)
		}
		out = append(out, c)
	}
	return out
}

// calibrationOf returns the calibration of the members if there are some, else
// that of mean and sigma, with the label of its histogram.
func calibrationOf(e entry) (*skill.Calibration, string) {
	s := e.record.Verdict.Summary
	if s.Ensemble != nil {
		return s.Ensemble, fmt.Sprintf("rank of the truth among %d members", len(s.Ensemble.Histogram)-1)
	}
	return s.Gaussian, "part of the Gaussian that the truth fell into"
}

func coverageCurves(rows []entry) []chart.Curve {
	var out []chart.Curve
	for _, e := range rows {
		cal, _ := calibrationOf(e)
		if cal == nil {
			continue
		}
		c := chart.Curve{Name: e.row.Name}
		for _, level := range cal.Coverage {
			c.X, c.Y = append(c.X, level.Nominal), append(c.Y, level.Share)
		}
		out = append(out, c)
	}
	return out
}

func spectrumCurves(rows []entry) []chart.Curve {
	var out []chart.Curve
	for _, e := range rows {
		s := e.record.Verdict.Summary.Spectrum
		if s == nil {
			continue
		}
		if len(out) == 0 {
			out = append(out, chart.Curve{Name: "truth", X: s.Wavelength, Y: s.Truth})
		}
		out = append(out, chart.Curve{Name: e.row.Name, X: s.Wavelength, Y: s.Filled})
		if m := e.record.Verdict.Summary.MemberSpectrum; m != nil {
			out = append(out, chart.Curve{Name: e.row.Name + ", a member", X: m.Wavelength, Y: m.Filled})
		}
	}
	return out
}

func rankHistogram(e entry) *chart.RankHistogram {
	cal, label := calibrationOf(e)
	if cal == nil || len(cal.Histogram) == 0 {
		return nil
	}
	return &chart.RankHistogram{Title: "Calibration of " + e.row.Name, XLabel: label, Counts: cal.Histogram}
}

// caption names the rule by which the sample was chosen.
func (r *run) caption() string {
	o := r.overlays[r.median]
	return fmt.Sprintf("%s, rows %d..%d, columns %d..%d: the case of which the mean map has the median error", o.Time.Format("2006-01-02"),
		o.Window.Row, o.Window.Row+o.Window.Height-1, o.Window.Col, o.Window.Col+o.Window.Width-1)
}

// reconstruction shows the median case as a row filled it.
func (r *run) reconstruction(e entry) (chart.Reconstruction, error) {
	x, err := r.examsOf(e.mode)
	if err != nil {
		return chart.Reconstruction{}, err
	}
	c, err := x.main.Case(r.median)
	o := r.overlays[r.median]
	return chart.Reconstruction{
		Title: fmt.Sprintf("%s: %s", r.job.Dataset, e.row.Name), Caption: r.caption(), Label: r.job.Label, Log10: r.held.Transform().Log10,
		Grid: c.Series.Grid, Sea: c.Series.Sea, Truth: x.main.Mapped(r.median, o.Values), Filled: x.main.Mapped(r.median, e.record.Sample.Mean),
		Visible: o.Visible, Scored: o.Scored,
	}, err
}

// comparison shows the median case as all rows filled it, and their errors
// below.
func (r *run) comparison(rows []entry) (chart.Maps, error) {
	var sheet chart.Maps
	var fills, errs []chart.Panel
	var misses [][]float32
	for _, e := range rows {
		p, err := r.reconstruction(e)
		if err != nil {
			return sheet, err
		}
		scale := chart.Range(p.Truth)
		scale.Label, scale.Log10 = p.Label, p.Log10
		if len(fills) == 0 {
			sheet = chart.Maps{Title: r.job.Dataset, Caption: r.caption(), Grid: p.Grid, Sea: p.Sea}
			fills = append(fills, chart.Panel{Title: "truth", Values: p.Truth, Scale: scale, Visible: p.Visible, Scored: p.Scored})
			errs = append(errs, chart.Panel{Title: "before", Values: only(p.Truth, p.Visible), Scale: scale, Visible: p.Visible})
		}
		after, miss := make([]float32, len(p.Filled)), make([]float32, len(p.Filled))
		for i, v := range p.Filled {
			after[i], miss[i] = v, float32(math.NaN())
			switch {
			case p.Visible[i]:
				after[i] = p.Truth[i]
			case p.Scored[i]:
				miss[i] = v - p.Truth[i]
			}
		}
		misses = append(misses, miss)
		fills = append(fills, chart.Panel{Title: e.row.Name, Values: after, Scale: scale, Visible: p.Visible, Scored: p.Scored})
		errs = append(errs, chart.Panel{Title: "error of " + e.row.Name, Values: miss, Scored: p.Scored})
	}
	scale := chart.Symmetric(misses...)
	scale.Label = "error"
	for i := range errs[1:] {
		errs[i+1].Scale = scale
	}
	if len(fills) <= sheetColumns { // errors below their maps
		sheet.Panels, sheet.Columns = append(fills, errs...), len(fills)
		return sheet, nil
	}
	for i := range fills {
		sheet.Panels = append(sheet.Panels, fills[i], errs[i])
	}
	sheet.Columns = 4
	return sheet, nil
}

// sheetColumns is how many maps fit beside one another on a page.
const sheetColumns = 7

// only returns values where a mask is set, missing elsewhere.
func only(values []float32, mask []bool) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(math.NaN())
		if mask[i] {
			out[i] = v
		}
	}
	return out
}

// maskSheet shows mean and standard deviation of guided masks for a patch.
func (r *run) maskSheet(rows []entry) chart.Maps {
	patches := r.patches(1)
	sheet := chart.Maps{Title: "Masks of guidance: " + r.job.Dataset, Caption: fmt.Sprintf("over %d draws for one patch", r.s.MaskDraws), Columns: 4}
	for _, e := range rows {
		m := e.record.Masks
		if m == nil || len(patches) == 0 {
			continue
		}
		all := make([]bool, len(m.MeanMap))
		for i := range all {
			all[i] = true
		}
		series, _ := r.train.Around(patches[0].Ref, all, 0, 0)
		sheet.Grid, sheet.Sea = series.Grid, patches[0].Sea
		sheet.Panels = append(sheet.Panels,
			chart.Panel{Title: e.row.Name + ", mean", Values: m.MeanMap, Scale: chart.Scale{Label: "mean of the mask", High: 1}},
			chart.Panel{Title: e.row.Name + ", sd", Values: m.SDMap, Scale: chart.Scale{Label: "sd of the mask", High: 0.5, Colours: chart.Warm}})
	}
	return sheet
}

// queries maps the frequency of query cells under the strategy of the first
// network beside that of another one, or beside pixels at random.
func (r *run) queries(ctx context.Context) (*chart.Probabilities, error) {
	var networks []Network
	for _, e := range r.entries {
		n := e.row.Network
		if e.row.trains() && n.Strategy != "everything" && (len(networks) == 0 || n.Strategy != networks[0].Strategy) && len(networks) < 2 {
			networks = append(networks, n)
		}
	}
	switch {
	case len(networks) == 0:
		return nil, nil
	case len(networks) == 1 && networks[0].Strategy != "pixel:0.3":
		networks = append(networks, Network{Strategy: "pixel:0.3"})
	}
	grid := r.train.Grid()
	p := &chart.Probabilities{
		Title: "How often an observed cell is to be reconstructed: " + r.job.Dataset, Label: "P(query)", Grid: grid, Sea: r.train.Sea(),
		Caption: fmt.Sprintf("%d draws of each of %d training patches", r.s.QueryDraws, r.s.QueryPatches),
	}
	for _, n := range networks {
		values, err := r.queryMap(ctx, n)
		if err != nil {
			return nil, err
		}
		p.Maps = append(p.Maps, chart.Probability{Name: n.Strategy, Values: values})
	}
	return p, nil
}

// queryMap returns P(query) of a strategy on the grid, kept.
func (r *run) queryMap(ctx context.Context, n Network) ([]float32, error) {
	key, err := keyOf(r.dataKey, r.priorKey, n.Strategy, n.Guidance, r.s.Train.Side, r.s.QueryPatches, r.s.QueryDraws)
	if err != nil {
		return nil, err
	}
	grid := r.train.Grid()
	on := partition.NewQueryMap(grid.Height(), grid.Width())
	known, err := r.folder.load(on, networksFolder, "query-"+key+".json")
	if err != nil {
		return nil, err
	}
	if !known {
		r.tell("map of P(query), "+n.Strategy, 0, 1, 0)
		by, err := r.partitioner(ctx, n)
		if err != nil {
			return nil, err
		}
		if err := partition.DrawQueries(ctx, by, r.patches(r.s.QueryPatches), r.s.QueryDraws, on, noise.New(1, "map of queries")); err != nil {
			return nil, err
		}
		if err := r.folder.save(on, networksFolder, "query-"+key+".json"); err != nil {
			return nil, err
		}
	}
	out := make([]float32, grid.Len())
	for i, p := range on.Probability() {
		out[i] = float32(p)
	}
	return out, nil
}
