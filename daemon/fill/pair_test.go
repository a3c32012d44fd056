package fill

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/merge"
	"lacuna/pipeline/simulate"
)

// A pair is a sea that two sensors look at, in the space in which errors are
// additive. The second reads bias too much, and noise comes on top of its own.
type pair struct {
	grid        field.Grid
	sea         field.Mask
	times       []time.Time
	truth       [][]float32 // NaN where it is not known
	seen        [2][][]float32
	bias, noise float64
	tuned       *infer.Constants // of optimal interpolation
}

// simulatedPair is the simulator with two sensors, as noisy as those of ocean colour
// are: the truth is known everywhere. It is made once: nobody changes it.
func simulatedPair(t *testing.T) pair {
	t.Helper()
	p, err := noisyPair()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var noisyPair = sync.OnceValues(func() (pair, error) { return simulated(0.06, 0.09) })

// simulatedWith is a pair of sensors with these noises.
func simulatedWith(t *testing.T, first, second float64) pair {
	t.Helper()
	p, err := simulated(first, second)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func simulated(first, second float64) (pair, error) {
	p := pair{bias: 0.15, noise: second}
	height, width := 48, 72
	if os.Getenv("LACUNA_LONG") != "" { // as in docs/results.md
		height, width = 64, 96
	}
	tr := field.Transform{Log10: true, Floor: 1e-3}
	forward := func(values []float32) []float32 {
		out := make([]float32, len(values))
		tr.Forward(out, values)
		return out
	}
	for k := range p.seen {
		cfg := simulate.Config{Product: "blk-chl", Height: height, Width: width, Days: 40, Seed: 7, Sensor: simulate.Sensor{Number: 1, Noise: first}}
		if k == 1 {
			cfg.Sensor = simulate.Sensor{Number: 2, Bias: p.bias, Noise: p.noise}
		}
		w, err := simulate.New(cfg)
		if err != nil {
			return pair{}, err
		}
		p.grid, p.sea = w.Grid(), w.Sea()
		for d := range w.Days() {
			day := w.Day(d)
			p.seen[k] = append(p.seen[k], forward(day.Seen.Values))
			if k == 0 {
				p.times, p.truth = append(p.times, day.Truth.Time.Truncate(24*time.Hour)), append(p.truth, forward(day.Truth.Values))
			}
		}
	}
	return p, nil
}

// realPair makes a pair of one real series, because no two of the real files show the
// same place on the same days: each sensor sees what the file has in its own swaths,
// which move from day to day, and the second has the bias and the noise. What neither
// sees is known from the file, and to be filled.
func realPair(t *testing.T, s newSea, bias, noise float64) pair {
	t.Helper()
	g := s.load(t)
	first := g.Fields[0]
	p := pair{grid: first.Grid, sea: first.Sea, bias: bias, noise: noise}
	rng := rand.New(rand.NewPCG(3, 9))
	width := first.Grid.Width()
	for d, f := range g.Fields {
		truth := make([]float32, len(f.Values))
		g.Transform.Forward(truth, f.Values)
		both := [2][]float32{slices.Clone(truth), slices.Clone(truth)}
		for c := range truth {
			row, col := c/width, c%width
			// Swaths of 60 and 55 of 100 cells, tilted as those of ascending and of
			// descending orbits.
			if (col+row/3+37*d)%100 >= 60 {
				both[0][c] = field.NaN()
			}
			if (col+1000-row/3+59*d)%100 >= 55 {
				both[1][c] = field.NaN()
			}
			both[1][c] += float32(bias + noise*rng.NormFloat64())
		}
		p.times, p.truth = append(p.times, f.Time), append(p.truth, truth)
		for k, seen := range both {
			p.seen[k] = append(p.seen[k], seen)
		}
	}
	return p
}

// A record is the fields of a series with their errors; nil: none are known.
type record struct{ values, errors [][]float32 }

// merged merges the days one after the other, as a service does; lost says which
// source has no granule of a day.
func (p pair) merged(lost func(source, day int) bool) (record, merge.Quality) {
	sources := []merge.Source{{Name: "first"}, {Name: "second"}}
	shape := merge.Shape{Height: p.grid.Height(), Width: p.grid.Width()}
	var out record
	var compared merge.Record
	var fit merge.Fit
	for d, day := range p.times {
		var fields []merge.Field
		for k, seen := range p.seen {
			if !lost(k, d) {
				fields = append(fields, merge.Field{Source: k, Values: seen[d]})
			}
		}
		earlier := slices.Clone(out.values[max(0, d-4):])
		slices.Reverse(earlier)
		compared.Put(merge.Summarize(day, shape, sources, fields, merge.Background(earlier...)))
		fit = compared.Fit(day, shape, sources)
		m := merge.Merge(fit, fields)
		out.values, out.errors = append(out.values, m.Values), append(out.errors, m.Errors)
	}
	return out, fit.Overall(1)
}

// alone are the fields of one of the sensors, less a bias.
func (p pair) alone(source int, less float64) record {
	var out record
	for _, seen := range p.seen[source] {
		values := slices.Clone(seen)
		for c := range values {
			values[c] -= float32(less)
		}
		out.values = append(out.values, values)
	}
	return out
}

// A grade is how well a series was filled: the cells that neither sensor saw, and all
// cells but those.
type grade struct {
	hidden, whole tally
	off           float64 // sum of the errors of hidden cells
	empty         int     // cells of the sea without a value
}

func (c tally) rmse() float64 { return math.Sqrt(c.squares / float64(c.cells)) }

// grade fills days from the twenty before each.
func (p pair) grade(t *testing.T, m record, days []int) (g grade) {
	t.Helper()
	for _, target := range days {
		job := Job{Dataset: "pair", Sea: p.sea, Fill: infer.DefaultConfig(), Constants: p.tuned}
		for d := max(0, target-20); d <= target; d++ {
			f := field.Field{Grid: p.grid, Time: p.times[d], Values: m.values[d], Sea: p.sea}
			var errors [][]float32
			if m.errors != nil {
				f.Errors, errors = m.errors[d], [][]float32{m.errors[d]}
			}
			job.History = append(job.History, ingest.Granule{Name: fmt.Sprint(d), SHA256: fmt.Sprint(d), Fields: []field.Field{f}, Errors: errors, Source: ingest.Source{Variable: "V"}})
		}
		last := len(job.History) - 1
		job.Granule, job.History = job.History[last], job.History[:last]
		out, err := Analyse(t.Context(), job, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := out.Analyses[0]
		for c, v := range a.Value {
			if p.sea[c] && v != v {
				g.empty++
			}
			off := float64(v - p.truth[target][c])
			if !p.sea[c] || off != off {
				continue
			}
			g.whole.add(off, float64(a.Sigma[c]))
			if p.seen[0][target][c] != p.seen[0][target][c] && p.seen[1][target][c] != p.seen[1][target][c] { // both have a gap
				g.hidden.add(off, float64(a.Sigma[c]))
				g.off += off
			}
		}
	}
	if g.hidden.cells < 500 {
		t.Fatalf("%d cells that neither sensor saw: that says little", g.hidden.cells)
	}
	return g
}

// tune sets the constants of optimal interpolation by the first half of the first
// sensor's days, as a service would that had only them: what is merged gets no help.
func (p *pair) tune(t *testing.T) {
	t.Helper()
	var fields []field.Field
	for d := range p.times[:len(p.times)/2] {
		fields = append(fields, field.Field{Grid: p.grid, Time: p.times[d], Values: p.seen[0][d], Sea: p.sea})
	}
	c, err := infer.Tune(t.Context(), fields, p.sea, field.Transform{}, infer.DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.tuned = &c
}

// days returns the n days of the second half of which most is known.
func (p pair) days(n int) []int {
	var all []int
	for d := len(p.times) / 2; d < len(p.times); d++ {
		all = append(all, d)
	}
	known := func(d int) (n int) {
		for _, v := range p.truth[d] {
			if v == v { // not NaN
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b int) int { return known(b) - known(a) })
	return all[:n]
}

func neverLost(int, int) bool { return false }

// Two sensors tell more than the better of them: their bias is found, the merged
// series is filled better than either alone, also than the second freed from its
// bias, and intervals keep their promise. Figures are in docs/results.md.
func TestAMergedPairIsBetterThanEither(t *testing.T) {
	if testing.Short() {
		t.Skip("fills days of a sea three times")
	}
	for _, tt := range []struct {
		name string
		long bool
		pair func(t *testing.T) pair
	}{
		{"simulated chlorophyll", false, simulatedPair},
		{"a noisier second sensor", true, func(t *testing.T) pair { return simulatedWith(t, 0, 0.08) }},
		{"a second sensor of mere noise", true, func(t *testing.T) pair { return simulatedWith(t, 0, 0.3) }},
		{"Pacific chlorophyll", true, func(t *testing.T) pair { return realPair(t, newSeas[4], 0.15, 0.1) }},
		{"Florida temperature", true, func(t *testing.T) pair { return realPair(t, newSeas[0], 0.5, 0.4) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long && os.Getenv("LACUNA_LONG") == "" {
				t.Skip("set LACUNA_LONG=1 for this sea")
			}
			p := tt.pair(t)
			p.tune(t)
			n, long := 4, os.Getenv("LACUNA_LONG") != ""
			if long {
				n = 16
			}
			days := p.days(n)
			m, found := p.merged(neverLost)
			first, second := p.grade(t, p.alone(0, 0), days), p.grade(t, p.alone(1, p.bias), days)
			both, alike := p.grade(t, m, days), grade{}
			if long { // a figure for the documentation: nothing is asked of it
				alike = p.grade(t, record{values: m.values}, days)
			}
			t.Logf("bias %.4f of %.4f, error of the second %.4f with noise of %.4f", found.Bias, p.bias, found.Sigma, p.noise)
			for _, row := range []struct {
				name string
				grade
			}{{"first alone", first}, {"second less bias", second}, {"merged, unweighed", alike}, {"merged", both}} {
				if row.hidden.cells == 0 {
					continue
				}
				t.Logf("%-18s rmse of %d gaps %.4f, of all %.4f; coverage %.3f and %.3f", row.name, row.hidden.cells, row.hidden.rmse(), row.whole.rmse(), row.hidden.covered(), row.whole.covered())
			}
			if math.Abs(found.Bias-p.bias) > 0.1*p.bias {
				t.Errorf("the bias is said to be %.4f, it is %.4f", found.Bias, p.bias)
			}
			if better := min(first.hidden.rmse(), second.hidden.rmse()); both.hidden.rmse() >= better {
				t.Errorf("the error of gaps is %.4f merged and %.4f with the better of both", both.hidden.rmse(), better)
			}
			if better := min(first.whole.rmse(), second.whole.rmse()); both.whole.rmse() >= better {
				t.Errorf("the error is %.4f merged and %.4f with the better of both", both.whole.rmse(), better)
			}
			for where, got := range map[string]float64{"gaps": both.hidden.covered(), "all": both.whole.covered()} {
				if got < 0.85 || got > 0.99 { // of a simulated sea the truth has no noise, which sigma includes
					t.Errorf("90 %% intervals of %s cover %.3f of the truth", where, got)
				}
			}
		})
	}
}

// When the reference is lost in mid-run, the days go on from the other sensor: there
// is no hole, and no step by its bias.
func TestLosingTheReferenceLeavesNeitherHoleNorStep(t *testing.T) {
	p := simulatedPair(t)
	const lost = 30
	m, _ := p.merged(func(source, day int) bool { return source == 0 && day >= lost })
	g := p.grade(t, m, []int{lost, lost + 4, lost + 8})
	off := g.off / float64(g.hidden.cells)
	t.Logf("after the loss gaps are off by %.4f in the mean, the bias is %.4f", off, p.bias)
	if math.Abs(off) > p.bias/5 {
		t.Errorf("after the loss gaps are off by %.4f in the mean: the bias of the second sensor, %.4f, comes through", off, p.bias)
	}
	if g.empty > 0 {
		t.Errorf("%d cells of the sea have no value", g.empty)
	}
}
