package fill

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/skill"
)

// Known returns the fields that the scaling of a model for the job may be learned
// from: all of its days or, in near-real-time, those before its granule.
func (job Job) Known() []field.Field {
	first, _ := field.Span(job.Granule.Fields)
	return slices.DeleteFunc(job.fields(), func(f field.Field) bool {
		return job.Fill.Future() == 0 && len(job.Granule.Fields) == 1 && !f.Time.Before(first)
	})
}

const (
	// weighedDays is how many days Weigh scores: enough for a first weight.
	weighedDays = 20
	// weighedSide is the side in cells of the piece of a larger grid on which it
	// scores them, so that weighing costs seconds whatever the grid.
	weighedSide = 128
)

// Weigh scores the model of a job that has no scored days: its own days and those
// of its history are filled under the gaps of others, by the model and by optimal
// interpolation, the scaling learned from the other days. Of a large grid it is the
// piece that the days show most of. With fewer days than a trust takes nothing is
// scored.
func Weigh(ctx context.Context, job Job, progress func(done, total int)) ([]skill.Departure, error) {
	days := job.fields()
	filler, err := infer.New(job.Fill, job.Model)
	if err != nil || len(days) < skill.TrustDays {
		return nil, err
	}
	p := pieceOf(days)
	job.Sea, job.Explained.Drift = p.mask(job.Sea), p.drift(job.Explained.Drift)
	for i, f := range days {
		days[i] = p.of(f)
	}
	var scored []skill.Departure
	n := min(weighedDays, len(days))
	for k := range n {
		d, ok, err := job.weighOne(ctx, filler, days, k*len(days)/n)
		if err != nil {
			return nil, fmt.Errorf("weigh the model on %s: %w", days[k*len(days)/n].Time.Format(time.DateOnly), err)
		}
		if ok {
			scored = append(scored, d)
		}
		progress(k+1, n)
	}
	return scored, nil
}

// Trusted returns how far the model of the job is followed by days that were
// scored, all of them or, in near-real-time, those before its granule, and by other
// seas, where the model is known there.
func (job Job) Trusted(days []skill.Departure, elsewhere *skill.Elsewhere) skill.Trust {
	before, last := field.Span(job.Granule.Fields)
	if job.Fill.Future() > 0 || !before.Equal(last) {
		before = time.Unix(1<<40, 0)
	}
	return skill.Trusted(days, before, elsewhere)
}

// fields returns the fields of the job and its history on its grid that have an
// observation, in order of time, each time once.
func (job Job) fields() []field.Field {
	grid := job.Granule.Fields[0].Grid
	var all []field.Field
	for _, g := range append([]ingest.Granule{job.Granule}, job.History...) {
		for _, f := range g.Fields {
			same := func(other field.Field) bool { return other.Time.Equal(f.Time) }
			if f.Grid.Same(grid) && f.ObservedMask().Count() > 0 && !slices.ContainsFunc(all, same) {
				all = append(all, f)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b field.Field) int { return a.Time.Compare(b.Time) })
	return all
}

// weighOne scores one of the days; it returns false where no other day has gaps
// for it.
func (job Job) weighOne(ctx context.Context, filler *infer.Filler, days []field.Field, at int) (skill.Departure, bool, error) {
	truth, tr := days[at], job.Granule.Transform
	others := slices.Concat(days[:at], days[at+1:])
	_, hidden, ok := Overlay(truth, others, truth.Time.String())
	if !ok {
		return skill.Departure{}, false, nil
	}
	scene := infer.Scene{
		Frames: []field.Field{Hide(truth, hidden)}, History: others, Sea: job.Sea, Transform: tr, Constants: job.Constants, Drift: job.Explained.Drift,
		Trust: &infer.Trust{Apart: true},
	}
	if job.Scaling != nil {
		if job.Fill.Future() == 0 {
			others = days[:at]
		}
		learned, err := LearnLocalScaling(others, job.Sea, tr)
		if err != nil {
			return skill.Departure{}, false, nil //nolint:nilerr // too few days before this one to scale the model by: it tells nothing
		}
		scene.Scaling = &learned.Scaling
	}
	filled, err := filler.Fill(ctx, scene, nil)
	if err != nil {
		return skill.Departure{}, false, err
	}
	for c := range hidden { // land is not filled, even where the sensor gave a value
		hidden[c] = hidden[c] && filled[0].Flags[c]&infer.Interpolated != 0
	}
	return DepartureOf(filled[0], truth, hidden, tr), true, nil
}

// A piece is a rectangle of a grid.
type piece struct{ row, col, high, wide, width int }

// pieceOf returns the piece that fields of one grid show most of.
func pieceOf(days []field.Field) piece {
	grid := days[0].Grid
	h, w := grid.Height(), grid.Width()
	sums := make([]int, (h+1)*(w+1)) // of all cells above and to the left
	for r := range h {
		for c := range w {
			n := sums[r*(w+1)+c+1] + sums[(r+1)*(w+1)+c] - sums[r*(w+1)+c]
			for _, f := range days {
				if f.Observed(r*w + c) {
					n++
				}
			}
			sums[(r+1)*(w+1)+c+1] = n
		}
	}
	best, most := piece{}, -1
	high, wide := min(weighedSide, h), min(weighedSide, w)
	const step = 16 // finer would hardly show more
	for row := 0; row <= h-high; row += step {
		for col := 0; col <= w-wide; col += step {
			n := sums[(row+high)*(w+1)+col+wide] - sums[row*(w+1)+col+wide] - sums[(row+high)*(w+1)+col] + sums[row*(w+1)+col]
			if n > most {
				best, most = piece{row: row, col: col, high: high, wide: wide, width: w}, n
			}
		}
	}
	return best
}

// of cuts the piece out of a field.
func (p piece) of(f field.Field) field.Field {
	f.Grid = f.Grid.Cut(p.row, p.col, p.high, p.wide)
	values := make([]float32, 0, p.high*p.wide)
	for r := p.row; r < p.row+p.high; r++ {
		values = append(values, f.Values[r*p.width+p.col:r*p.width+p.col+p.wide]...)
	}
	f.Values, f.Sea = values, p.mask(f.Sea)
	return f
}

// drift cuts the piece out of what covariates explain.
func (p piece) drift(all []infer.Drift) []infer.Drift {
	var out []infer.Drift
	for _, d := range all {
		values := make([]float32, 0, p.high*p.wide)
		for r := p.row; r < p.row+p.high; r++ {
			values = append(values, d.Values[r*p.width+p.col:r*p.width+p.col+p.wide]...)
		}
		out = append(out, infer.Drift{Time: d.Time, Values: values})
	}
	return out
}

// mask cuts the piece out of a mask; nil stays nil.
func (p piece) mask(m field.Mask) field.Mask {
	if m == nil {
		return nil
	}
	out := make(field.Mask, 0, p.high*p.wide)
	for r := p.row; r < p.row+p.high; r++ {
		out = append(out, m[r*p.width+p.col:r*p.width+p.col+p.wide]...)
	}
	return out
}
