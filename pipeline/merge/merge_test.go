package merge

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// A sensor of a simulated sea, of known bias and noise.
type sensor struct {
	bias     func(day time.Time, row, col int) float64
	noise    float64
	seen     float64 // share of the cells of a day, in patches
	outliers float64 // share of the seen cells that are a unit off
}

func always(bias float64) func(time.Time, int, int) float64 {
	return func(time.Time, int, int) float64 { return bias }
}

const height, width = 48, 96 // two regions by four

var shape = Shape{height, width}

// truth is a sea that changes from day to day by about 0.1.
func truth(day time.Time) []float32 {
	out := make([]float32, height*width)
	t := float64(day.Unix()) / 86400
	for i := range out {
		y, x := float64(i/width), float64(i%width)
		out[i] = float32(0.5*math.Sin(x/11+t/9) + 0.4*math.Cos(y/7-t/13) + 0.1*math.Sin(x/3+y/4+t))
	}
	return out
}

func (s sensor) look(day time.Time, at int, rnd *rand.Rand) Field {
	f := Field{Source: at, Values: truth(day)}
	const patch = 12
	clear := make([]bool, height/patch*width/patch)
	for i := range clear {
		clear[i] = rnd.Float64() < s.seen
	}
	for i := range f.Values {
		row, col := i/width, i%width
		f.Values[i] += float32(s.bias(day, row, col) + s.noise*rnd.NormFloat64())
		if rnd.Float64() < s.outliers {
			f.Values[i] += float32(1 + rnd.Float64())
		}
		if !clear[row/patch*(width/patch)+col/patch] {
			f.Values[i] = field.NaN()
		}
	}
	return f
}

var first = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)

// watch runs days of sensors through summaries, as a service would, and calls visit
// with each day's fields and their fit.
func watch(days int, sources []Source, sensors []sensor, visit func(day time.Time, fields []Field, f Fit)) Record {
	rnd := rand.New(rand.NewPCG(1, 2))
	var r Record
	var earlier [][]float32
	for n := range days {
		day := first.AddDate(0, 0, n)
		var fields []Field
		for i, s := range sensors {
			fields = append(fields, s.look(day, i, rnd))
		}
		r.Put(Summarize(day, shape, sources, fields, Background(earlier...)))
		f := r.Fit(day, shape, sources)
		merged := Merge(f, fields)
		earlier = slices.Insert(earlier, 0, merged.Values)[:min(len(earlier)+1, 4)]
		if visit != nil {
			visit(day, fields, f)
		}
	}
	return r
}

var pair = []Source{{Name: "good"}, {Name: "poor"}}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s is %.4f, want %.4f within %.0f %%", what, got, want, 100*share)
	}
}

func TestBiasAndErrorsOfTwoSensorsAreRecovered(t *testing.T) {
	for _, tt := range []struct {
		name     string
		outliers float64
	}{{name: "clean"}, {name: "one in twenty cells of either is wrong", outliers: 0.05}} {
		t.Run(tt.name, func(t *testing.T) {
			sensors := []sensor{
				{bias: always(0), noise: 0.05, seen: 0.5, outliers: tt.outliers},
				{bias: always(0.13), noise: 0.12, seen: 0.6, outliers: tt.outliers},
			}
			var last Fit
			watch(40, pair, sensors, func(_ time.Time, _ []Field, f Fit) { last = f })
			near(t, "bias", last.Overall(1).Bias, 0.13, 0.1)
			near(t, "error of the poor one", last.Overall(1).Sigma, 0.12, 0.2)
			near(t, "error of the good one", last.Overall(0).Sigma, 0.05, 0.35)
			if got := last.Overall(0).Bias; got != 0 {
				t.Errorf("the reference has the bias %v", got)
			}
		})
	}
}

// The merged field must be nearer to the truth than either sensor where it sees, and
// see what either does.
func TestMergedIsBetterThanTheBetterSensor(t *testing.T) {
	sensors := []sensor{{bias: always(0), noise: 0.1, seen: 0.4}, {bias: always(-0.3), noise: 0.05, seen: 0.5}}
	var one, other, both struct {
		squares float64
		cells   int
	}
	watch(40, pair, sensors, func(day time.Time, fields []Field, f Fit) {
		if day.Before(first.AddDate(0, 0, 10)) {
			return
		}
		sea, merged := truth(day), Merge(f, fields)
		add := func(values []float32, to *struct {
			squares float64
			cells   int
		},
		) {
			for i, v := range values {
				if v == v {
					to.squares += float64(v-sea[i]) * float64(v-sea[i])
					to.cells++
				}
			}
		}
		add(fields[0].Values, &one)
		add(fields[1].Values, &other)
		add(merged.Values, &both)
		for i, at := range merged.Field {
			seen := fields[0].Values[i] == fields[0].Values[i] || fields[1].Values[i] == fields[1].Values[i]
			if seen != (at >= 0) || seen != (merged.Values[i] == merged.Values[i]) {
				t.Fatalf("cell %d of %v: seen %v, taken from %d", i, day, seen, at)
			}
			if at == 0 && (merged.Values[i] != fields[0].Values[i] || merged.Bias[i] != 0) {
				t.Fatalf("cell %d of the reference was changed from %v to %v", i, fields[0].Values[i], merged.Values[i])
			}
		}
	})
	mse := both.squares / float64(both.cells)
	for name, alone := range map[string]float64{"reference": one.squares / float64(one.cells), "other": other.squares / float64(other.cells)} {
		if mse >= alone {
			t.Errorf("merged has the error %.5f, the %s alone %.5f", mse, name, alone)
		}
	}
	if both.cells <= max(one.cells, other.cells)*12/10 {
		t.Errorf("merged has %d cells, the sensors %d and %d", both.cells, one.cells, other.cells)
	}
}

func TestTheBetterSourceWinsWhereBothSee(t *testing.T) {
	f := Fit{shape: Shape{1, 3}, sources: pair, regions: [][]Quality{{{Sigma: 0.2}, {Bias: 1, Sigma: 0.1}}}}
	nan := field.NaN()
	fields := []Field{{Source: 0, Values: []float32{1, 1, nan}}, {Source: 1, Values: []float32{5, nan, nan}}}
	got := Merge(f, fields)
	if want := []int{1, 0, -1}; !slices.Equal(got.Field, want) {
		t.Errorf("cells come from %v, want %v", got.Field, want)
	}
	if got.Values[0] != 4 || got.Values[1] != 1 || got.Values[2] == got.Values[2] {
		t.Errorf("values are %v, want 4, 1 and a gap", got.Values)
	}
	if got.Errors[0] != 0.1 || got.Errors[1] != 0.2 {
		t.Errorf("errors are %v, want those of the sources", got.Errors)
	}
	f.regions[0][1].Sigma = 0.19 // within a tenth: the order decides
	if got := Merge(f, fields); got.Field[0] != 0 {
		t.Errorf("among equals the cell goes to %d, want the first", got.Field[0])
	}
	f.regions[0][0].Sigma = math.NaN()
	if got := Merge(f, fields); got.Field[0] != 0 {
		t.Errorf("with an unknown error the cell goes to %d, want the first", got.Field[0])
	}
	fields[1].Errors = []float32{0.3, nan, nan} // a pattern, but the fit gives its size
	f.regions[0] = []Quality{{Sigma: 0.2}, {Sigma: 0.1}}
	if got := Merge(f, fields); got.Errors[0] != 0.1 {
		t.Errorf("a single error of its own is scaled to %v, want the fitted 0.1", got.Errors[0])
	}
}

// A bias of the half of the sea and of the half of the year is found there, and not
// before there are days enough to tell.
func TestRegionsAndSeasonsAreToldApartWhereDaysSuffice(t *testing.T) {
	east := func(day time.Time, _, col int) float64 {
		if col < width/2 {
			return 0
		}
		if day.YearDay() < 180 {
			return 0.4
		}
		return 0.1
	}
	sensors := []sensor{{bias: always(0), noise: 0.05, seen: 0.7}, {bias: east, noise: 0.05, seen: 0.7}}
	var early, winter, summer Fit
	watch(300, pair, sensors, func(day time.Time, _ []Field, f Fit) {
		switch {
		case day.Equal(first.AddDate(0, 0, 4)):
			early = f
		case day.YearDay() == 150:
			winter = f
		case day.YearDay() == 300:
			summer = f
		}
	})
	west, middle, far := height/2*width, height/2*width+width/2, height/2*width+width-1
	if a, b := early.Quality(1, west).Bias, early.Quality(1, far).Bias; a != b {
		t.Errorf("five days tell regions apart: %.3f and %.3f", a, b)
	}
	near(t, "bias of the east in spring", winter.Quality(1, far).Bias, 0.4, 0.1)
	near(t, "bias of the east in autumn", summer.Quality(1, far).Bias, 0.1, 0.1)
	for name, f := range map[string]Fit{"spring": winter, "autumn": summer} {
		if got := f.Quality(1, west).Bias; math.Abs(got) > 0.02 {
			t.Errorf("bias of the west in %s is %.3f, want none", name, got)
		}
		step := 0.0
		for c := west + 1; c <= far; c++ {
			step = max(step, math.Abs(f.Quality(1, c).Bias-f.Quality(1, c-1).Bias))
		}
		if step > 0.02 {
			t.Errorf("in %s the bias jumps by %.3f from one cell to the next, near the border at %d", name, step, middle)
		}
	}
}

// A fit must not know the days after its own.
func TestAFitDoesNotLookAhead(t *testing.T) {
	turned := func(day time.Time, _, _ int) float64 {
		if day.Before(first.AddDate(0, 0, 20)) {
			return 0.2
		}
		return 5
	}
	sensors := []sensor{{bias: always(0), noise: 0.05, seen: 0.7}, {bias: turned, noise: 0.05, seen: 0.7}}
	r := watch(60, pair, sensors, nil)
	near(t, "bias on day 20", r.Fit(first.AddDate(0, 0, 19), shape, pair).Overall(1).Bias, 0.2, 0.1)
}

func TestADayThatComesAgainCountsOnce(t *testing.T) {
	sensors := []sensor{{bias: always(0), noise: 0.05, seen: 0.7}, {bias: always(0.3), noise: 0.05, seen: 0.7}}
	r := watch(5, pair, sensors, nil)
	before := r.Fit(first.AddDate(0, 0, 9), shape, pair).Overall(1)
	r.Put(r.Days[2])
	if got := r.Fit(first.AddDate(0, 0, 9), shape, pair).Overall(1); got != before {
		t.Errorf("the same day again changes the fit from %+v to %+v", before, got)
	}
	r.Put(Day{Date: r.Days[2].Date}) // a source took its granule back
	if len(r.Days) != 4 {
		t.Errorf("%d days are left of 5 after one has no common cells any more", len(r.Days))
	}
}

// Sources of one sensor share its errors: their agreement must not pass for
// accuracy.
func TestTwoArchivesOfOneSensorTellNoError(t *testing.T) {
	sources := []Source{{Name: "reprocessed", Sensor: "modis"}, {Name: "live", Sensor: "modis"}}
	rnd := rand.New(rand.NewPCG(3, 4))
	var r Record
	s := sensor{bias: always(0), noise: 0.1, seen: 0.9}
	for n := range 20 {
		day := first.AddDate(0, 0, n)
		f := s.look(day, 0, rnd)
		again := Field{Source: 1, Values: slices.Clone(f.Values)}
		for i := range again.Values {
			again.Values[i] += 0.05
		}
		r.Put(Summarize(day, shape, sources, []Field{f, again}, nil))
	}
	fit := r.Fit(first.AddDate(0, 0, 20), shape, sources)
	if got := fit.Overall(0).Sigma; !math.IsNaN(got) {
		t.Errorf("the error is said to be %v, want unknown", got)
	}
	near(t, "bias of the live archive", fit.Overall(1).Bias, 0.05, 0.1)
}

// A source that never meets the reference is corrected by way of one that does.
func TestBiasGoesByWayOfAThirdSource(t *testing.T) {
	sources := []Source{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	contrasts := map[[2]int]contrast{
		{0, 1}: {bias: -0.2, sum: 0.02, days: 20},
		{1, 2}: {bias: -0.3, sum: 0.02, days: 20},
	}
	got := solve(sources, contrasts)
	near(t, "bias of b", got[1].Bias, 0.2, 1e-6)
	near(t, "bias of c", got[2].Bias, 0.5, 1e-6)
}

func TestASourceThatIsNeverMetStaysAsItIs(t *testing.T) {
	sources := []Source{{Name: "a"}, {Name: "b", Error: 0.3}}
	fit := (&Record{}).Fit(first, shape, sources)
	if q := fit.Overall(1); q.Bias != 0 || q.Sigma != 0.3 || q.Days != 0 {
		t.Errorf("without a common cell b is %+v, want no bias and the error of the configuration", q)
	}
	if q := fit.Overall(0); !math.IsNaN(q.Sigma) {
		t.Errorf("without a common cell the error of a is %v, want unknown", q.Sigma)
	}
}
