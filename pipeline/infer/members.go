package infer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
)

// withMembers fills a frame, with the members that the config asks for: those of
// the networks where the model has some, else simulated ones.
func (f *Filler) withMembers(ctx context.Context, v view, progress func(done, total int)) (filling, error) {
	n := f.cfg.Members
	if n == 0 || f.model != nil && f.model.Members() && (v.trust.followed() || f.draws()) {
		out, err := f.fill(ctx, v, progress)
		if n > 0 && err == nil {
			out.members = out.members[:n]
		}
		return out, err
	}
	part := func(k int) func(done, total int) {
		return func(done, total int) { progress(k*total+done, (n+1)*total) }
	}
	out, err := f.fill(ctx, v, part(0))
	switch {
	case errors.Is(err, classical.ErrNoObservations): // every member is as empty as the analysis
		out.members = make([][]float32, n)
		for k := range out.members {
			out.members[k] = make([]float32, v.Grid.Len())
		}
	case err == nil:
		out.members, err = f.simulate(ctx, v, out.estimate, part)
	}
	return out, err
}

// simulate draws members about an estimate e for a method that has none of its
// own, by conditional simulation. A sea of random numbers that has the
// covariance of optimal interpolation is seen through the gaps of the series,
// and filled by the same method: its errors there, where the truth is known, are
// errors that the method may have made here. Times the sigma of e, in units of
// the sigma there, they are added to e. They are small near observations, and
// differ from cell to cell as much as real ones. Each member costs a filling.
//
// See Chilès and Delfiner, Geostatistics (2012), chapter 7.
func (f *Filler) simulate(ctx context.Context, v view, e classical.Estimate, part func(k int) func(done, total int)) ([][]float32, error) {
	members := make([][]float32, f.cfg.Members)
	s := newSimulation(v)
	stream := noise.New(f.cfg.Network.Seed, "simulated members", v.Frames[v.target].Time.UTC().Format(time.RFC3339Nano))
	for k := range members {
		truth, seen := s.draw(stream.Sub(uint64(k)))
		guess, err := f.guess(ctx, seen, part(k+1))
		if err != nil {
			return nil, fmt.Errorf("draw member %d: %w", k+1, err)
		}
		eachCell(len(truth), func(i int) {
			if d := (truth[i] - guess.Mean[i]) / guess.Sigma[i]; finite(d) {
				truth[i] = d
			}
		})
		members[k] = truth
	}
	s.addTo(e, members)
	return members, nil
}

// guess fills a simulated series by the method, or by optimal interpolation where
// that is a model: on invented data a network would be wrong in ways of its own.
func (f *Filler) guess(ctx context.Context, v view, progress func(done, total int)) (classical.Estimate, error) {
	if f.cfg.Method == MethodModel {
		return v.oi.FillContext(ctx, v.Series, v.target, progress)
	}
	out, err := f.apply(ctx, v, f.cfg.Method, progress)
	return out.estimate, err
}

// A simulation draws random seas that are seen through the gaps of a series.
type simulation struct {
	view
	fields *noise.Exponential
	patch  float64   // number of cells of a square of one correlation length
	reach  []float64 // distance of the cells to the nearest observation of the target, by factors of two
}

func newSimulation(v view) *simulation {
	g := v.Grid
	rows, cols := lengthCells(g, v.oi.LengthKM)
	s := &simulation{
		view: v, fields: noise.NewExponential(g.Height(), g.Width(), rows, cols, g.Periodic()),
		patch: max(rows*cols, 1), reach: make([]float64, g.Len()),
	}
	visible := make([]bool, g.Len())
	for i, y := range v.Frames[v.target].Values {
		visible[i] = finite(y) && (v.Sea == nil || v.Sea[i])
	}
	for i, d := range distances(visible, g) {
		s.reach[i] = min(math.Log2(max(float64(d), 1)), reachKnots-1)
	}
	return s
}

// lengthCells returns a length in rows and in columns at the middle of a grid. A
// length far beyond the grid is shortened: over it the sea hardly changes.
func lengthCells(g field.Grid, km float64) (rows, cols float64) {
	i, j := (g.Height()-1)/2, (g.Width()-1)/2
	most := 2 * float64(max(g.Height(), g.Width()))
	in := func(a, b, cells int) float64 {
		if cells == 1 {
			return 1
		}
		x, y, z := g.Cartesian(i, j)
		p, q, r := g.Cartesian(a, b)
		return min(km/math.Sqrt((x-p)*(x-p)+(y-q)*(y-q)+(z-r)*(z-r)), most)
	}
	return in(min(i+1, g.Height()-1), j, g.Height()), in(i, min(j+1, g.Width()-1), g.Width())
}

// draw returns the target of a random sea, and what is seen of the sea:
// anomalies of variance 1 that forget exponentially in space and time, the share
// of the nugget as noise of every single cell.
func (s *simulation) draw(stream noise.Stream) (truth []float32, seen view) {
	n := s.Grid.Len()
	fresh := make([][]float32, (len(s.Frames)+1)/2*2)
	each(len(fresh)/2, func(k int) {
		fresh[2*k], fresh[2*k+1] = make([]float32, n), make([]float32, n)
		s.fields.Draw(fresh[2*k], fresh[2*k+1], stream.Sub(uint64(k)))
	})
	seen = s.view
	seen.Frames, seen.last = make([]classical.Frame, len(s.Frames)), false
	shared, own := float32(math.Sqrt(1-s.oi.Nugget)), float32(math.Sqrt(s.oi.Nugget))
	white := make([]float32, n)
	for t, frame := range s.Frames {
		if t > 0 { // what is left of the frame before
			days := frame.Time.Sub(s.Frames[t-1].Time).Hours() / 24
			kept := math.Exp(-days / s.oi.Days)
			added := float32(math.Sqrt(1 - kept*kept))
			eachCell(n, func(i int) { fresh[t][i] = float32(kept)*fresh[t-1][i] + added*fresh[t][i] })
		}
		stream.Normals(white, uint64(t+1))
		sea, values := make([]float32, n), make([]float32, n)
		eachCell(n, func(i int) {
			sea[i], values[i] = shared*fresh[t][i]+own*white[i], field.NaN()
			if finite(frame.Values[i]) {
				values[i] = sea[i]
			}
		})
		seen.Frames[t] = classical.Frame{Time: frame.Time, Values: values}
		if t == s.target {
			truth = sea
		}
	}
	return truth, seen
}

const (
	// reachKnots are the distances, 1, 2, 4 to 32 cells, at which the spread of
	// simulated errors is measured.
	reachKnots = 6
	// reachPatches is how many independent errors outweigh the expectation that
	// their spread is sigma.
	reachPatches = 4
)

// addTo makes members of simulated errors in units of their sigma, by adding
// them to e. Optimal interpolation allows for an error of its mean map that a
// random sea does not have; the spread is set right by the distance to the
// nearest observation, without a step.
func (s *simulation) addTo(e classical.Estimate, off [][]float32) {
	var squares, weights [reachKnots]float64
	for i, reach := range s.reach {
		if !finite(e.Sigma[i]) || finite(s.Frames[s.target].Values[i]) {
			continue
		}
		knot := min(int(reach), reachKnots-2)
		above := reach - float64(knot)
		for _, x := range off {
			u := float64(x[i]) * float64(x[i]) / s.patch
			squares[knot], squares[knot+1] = squares[knot]+(1-above)*u, squares[knot+1]+above*u
			weights[knot], weights[knot+1] = weights[knot]+(1-above)/s.patch, weights[knot+1]+above/s.patch
		}
	}
	for k := range squares {
		squares[k] = math.Sqrt((weights[k] + reachPatches) / (squares[k] + reachPatches))
	}
	eachCell(len(s.reach), func(i int) {
		knot := min(int(s.reach[i]), reachKnots-2)
		above := s.reach[i] - float64(knot)
		factor := float32((1-above)*squares[knot] + above*squares[knot+1])
		for _, x := range off {
			x[i] = e.Mean[i] + factor*e.Sigma[i]*x[i]
		}
	})
}
