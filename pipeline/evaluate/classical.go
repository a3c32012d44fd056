package evaluate

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/samples"
)

// OI returns optimal interpolation as a method.
func OI(o classical.OI) Method {
	o.Workers = 1 // cases run side by side instead
	return eachCase("oi", func(c Case) (classical.Estimate, error) { return o.Fill(c.Series, c.Target, nil) })
}

// Interpolation returns optimal interpolation with the default settings for the
// grid of each place of the exam.
func (e *Exam) Interpolation() Method {
	return e.InterpolationBy(func(_ int, oi classical.OI) classical.OI { return oi })
}

// InterpolationBy returns optimal interpolation with the default settings for the
// grid of each place of the exam as change returns them, by the number of the place.
func (e *Exam) InterpolationBy(change func(place int, oi classical.OI) classical.OI) Method {
	var settings []classical.OI
	for i, p := range e.held.Places() {
		oi := change(i, classical.DefaultOI(p.Grid))
		oi.Workers = 1 // cases run side by side instead
		settings = append(settings, oi)
	}
	return eachCase("oi", func(c Case) (classical.Estimate, error) {
		return settings[e.overlays[c.Number].Place].Fill(c.Series, c.Target, nil)
	})
}

// DINEOF returns the empirical orthogonal functions of the window's own days
// as a method: it uses the same days as the other methods.
func DINEOF(d classical.DINEOF) Method {
	d.Workers = 1
	return eachCase("dineof", func(c Case) (classical.Estimate, error) { return d.Fill(c.Series, c.Target, nil) })
}

// Persistence returns the last observation as a method.
func Persistence() Method {
	return eachCase("persistence", func(c Case) (classical.Estimate, error) {
		return classical.Persistence(c.Series, c.Target, samples.LastDays*24*time.Hour), nil
	})
}

// Climatology returns the mean map of the training days as a method: zero, in
// anomalies, with the spread of the variable.
func Climatology() Method {
	return eachCase("climatology", func(c Case) (classical.Estimate, error) {
		n := c.Inputs.Cells()
		e := classical.Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
		for i := range e.Sigma {
			e.Sigma[i] = 1
		}
		return e, nil
	})
}

// eachCase returns a method that fills one case at a time, cases concurrently.
func eachCase(name string, fill func(Case) (classical.Estimate, error)) Method {
	return Method{Name: name, Fill: func(ctx context.Context, cases []Case) ([]Answer, error) {
		out := make([]Answer, len(cases))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, c := range cases {
			group.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				e, err := fill(c)
				if err != nil {
					return err
				}
				out[i] = Answer{Mean: known(e.Mean, 0), Sigma: known(e.Sigma, 1)}
				return nil
			})
		}
		return out, group.Wait()
	}}
}

// known returns values with otherwise in place of NaN: the mean map or its
// spread, where a method has no estimate.
func known(values []float32, otherwise float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = otherwise
		if v == v { // not NaN
			out[i] = v
		}
	}
	return out
}
