package fill

import (
	"fmt"
	"math"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/skill"
)

// The must of a sea that is new: with one day before it or two, the truth lies in
// its 90 % interval nine times in ten, near observations and far from them.
func TestIntervalsOfARealSeaCoverFromItsSecondDayOn(t *testing.T) {
	if testing.Short() {
		t.Skip("fills many real days")
	}
	for _, sea := range []string{"Florida, SST", "St Lawrence, chlorophyll"} {
		for _, s := range newSeas {
			if s.name != sea {
				continue
			}
			g := s.load(t)
			var sum tallies
			for _, n := range []int{1, 2} {
				const of = 6 // days in each sum
				for k := range of {
					var none []skill.ScoredDay
					if err := newcomer(t.Context(), g, n+k*(len(g.Fields)-n)/of, n, interpolated, &none, &sum); err != nil {
						t.Fatal(err)
					}
				}
			}
			if all := sum.all().covered(); all < 0.84 || all > 0.96 {
				t.Errorf("%s: 90 %% intervals cover %.3f of %d cells", sea, all, sum.all().cells)
			}
			for class, c := range sum {
				if c.cells > 500 && (c.covered() < 0.78 || c.covered() > 0.985) {
					t.Errorf("%s, up to %g cells away: 90 %% intervals cover %.3f of %d cells", sea, classes[class], c.covered(), c.cells)
				}
			}
		}
	}
}

// simulatedDays returns days of a simulated sea as granules, and their truth.
func simulatedDays(t *testing.T, seed uint64, n int) (days []ingest.Granule, truth []field.Field, sea field.Mask) {
	t.Helper()
	return simulatedOn(t, 64, 96, seed, n)
}

func simulatedOn(t *testing.T, height, width int, seed uint64, n int) (days []ingest.Granule, truth []field.Field, sea field.Mask) {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: height, Width: width, Days: 40, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	for d := 0; d < w.Days() && len(days) < n; d++ {
		day := w.Day(d)
		if day.Seen.ObservedMask().Count() < height*width/20 {
			continue
		}
		days = append(days, ingest.Granule{
			Name: fmt.Sprint(d), SHA256: fmt.Sprint(d), Fields: []field.Field{day.Seen}, Transform: field.Transform{Log10: true, Floor: 1e-3},
			Source: ingest.Source{Variable: "CHL"},
		})
		truth = append(truth, day.Truth)
	}
	return days, truth, w.Sea()
}

// coveredBy returns the share of the truth in the 90 % intervals of an analysis.
func coveredBy(t *testing.T, job Job, truth field.Field) (c tally) {
	t.Helper()
	outcome, err := Analyse(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := outcome.Analyses[0]
	value, want := make([]float32, len(a.Value)), make([]float32, len(a.Value))
	job.Granule.Transform.Forward(value, a.Value)
	job.Granule.Transform.Forward(want, truth.Values)
	for i, flags := range a.Flags {
		if flags == infer.Interpolated && want[i] == want[i] { // not NaN
			c.add(float64(value[i]-want[i]), float64(a.Sigma[i]))
		}
	}
	return c
}

func TestIntervalsOfASimulatedSeaCoverItsFirstDays(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	const seeds = 6
	var shares [3]float64 // by the number of days before
	for seed := range uint64(seeds) {
		days, truth, sea := simulatedDays(t, 30+seed, len(shares))
		for n := range shares {
			job := Job{Dataset: "new", Granule: days[n], History: days[:n], Sea: sea, Fill: infer.DefaultConfig()}
			c := coveredBy(t, job, truth[n])
			shares[n] += c.covered() / seeds
		}
	}
	for n, share := range shares {
		if share < 0.8 || share > 0.98 { // the truth has no noise, which sigma includes
			t.Errorf("with %d days before it 90 %% intervals cover %.3f of the truth", n, share)
		}
	}
}

// On the first days of a service a swath may show a corner of the sea and nothing
// else. The interval must not be that of the corner.
func TestIntervalsKnowThatACornerIsNotTheSea(t *testing.T) {
	const seeds = 6
	var shares float64
	for seed := range uint64(seeds) {
		days, truth, sea := simulatedDays(t, 50+seed, 2)
		w := truth[0].Grid.Width()
		for d := range days {
			f := &days[d].Fields[0]
			shown := 0
			values := make([]float32, len(f.Values))
			for c := range values {
				values[c] = field.NaN()
				// A patch of about one fortieth of the sea.
				if row, col := c/w, c%w; sea[c] && row >= 30 && row < 42 && col >= 40+4*d && col < 52+4*d {
					values[c] = truth[d].Values[c]
					shown++
				}
			}
			if f.Values = values; shown < 40 {
				t.Fatalf("seed %d: the patch has %d cells of sea", seed, shown)
			}
		}
		job := Job{Dataset: "new", Granule: days[1], History: days[:1], Sea: sea, Fill: infer.DefaultConfig()}
		c := coveredBy(t, job, truth[1])
		shares += c.covered() / seeds
	}
	if shares < 0.6 {
		t.Errorf("with a fortieth of the sea observed 90 %% intervals cover %.3f of the rest", shares)
	}
}

// Anybody who looks at a map of sigma sees the gaps and not the method: away from
// observations it changes little by little, up to the edges of the grid.
func TestAMapOfSigmaHasNoSteps(t *testing.T) {
	for seed := range uint64(3) {
		days, _, sea := simulatedDays(t, 70+seed, 3)
		job := Job{Dataset: "new", Granule: days[2], History: days[:2], Sea: sea, Fill: infer.DefaultConfig()}
		outcome, err := Analyse(t.Context(), job, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, w := outcome.Analyses[0], days[2].Fields[0].Grid.Width()
		away := skill.Distances(days[2].Fields[0].ObservedMask(), len(sea)/w, w)
		sum, largest, level, n := 0.0, 0.0, 0.0, 0.0
		for c := range a.Sigma {
			for _, next := range []int{c + 1, c + w} {
				if next >= len(sea) || next == c+1 && next%w == 0 || away[c] < 3 || away[next] < 3 {
					continue
				}
				if step := math.Abs(float64(a.Sigma[next] - a.Sigma[c])); step == step { // not NaN: both filled
					sum, n, largest, level = sum+step, n+1, max(largest, step), level+float64(a.Sigma[c])
				}
			}
		}
		if n < 1000 || largest > 15*sum/n || largest > 0.25*level/n {
			t.Errorf("seed %d: the largest of %g steps of sigma is %.1f times the mean one, and %.3f of sigma", seed, n, largest*n/sum, largest*n/level)
		}
	}
}
