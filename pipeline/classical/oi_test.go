package classical

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"

	"gonum.org/v1/gonum/mat"
)

var noon = time.Date(2021, 6, 1, 12, 0, 0, 0, time.UTC)

// line returns a series of one row of cells on the equator, stepKM apart.
func line(stepKM float64, days ...[]float32) Series {
	lon := make([]float64, len(days[0]))
	for j := range lon {
		lon[j] = float64(j) * stepKM / kilometresPerDegree
	}
	s := Series{Grid: field.Grid{Lat: []float64{0}, Lon: lon}}
	for d, values := range days {
		s.Frames = append(s.Frames, Frame{Time: noon.AddDate(0, 0, d), Values: values})
	}
	return s
}

// gappy returns n gaps.
func gappy(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = field.NaN()
	}
	return v
}

// plain returns an OI without any approximation: all observations, one cell a
// solve.
func plain(g field.Grid) OI {
	o := DefaultOI(g)
	o.Neighbours, o.PerSector, o.Spacing = 1000, 1000, 1
	return o
}

func fill(t *testing.T, o OI, s Series, target int) Estimate {
	t.Helper()
	e, err := o.Fill(s, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEstimateDecaysToTheMeanAndSigmaGrowsAwayFromAnObservation(t *testing.T) {
	const n = 160
	// A lone high value today; low and high values far away keep the mean map
	// near zero and the spread near one.
	today, before := gappy(n), gappy(n)
	today[0] = 3
	for i := 100; i < n; i += 2 {
		before[i], before[i+1] = -1, 1
	}
	s := line(4, before, today)
	o := plain(s.Grid)
	o.LengthKM, o.SmoothKM = 40, 1e5 // makes one mean for the whole line
	e := fill(t, o, s, 1)
	for i := 2; i < 45; i++ { // beyond, the values far away come into play
		if e.Mean[i] >= e.Mean[i-1] {
			t.Fatalf("mean rises from %v to %v at cell %d, away from the observation", e.Mean[i-1], e.Mean[i], i)
		}
		if e.Sigma[i] <= e.Sigma[i-1] {
			t.Fatalf("sigma falls from %v to %v at cell %d, away from the observation", e.Sigma[i-1], e.Sigma[i], i)
		}
	}
	if e.Mean[1] < 1.5 {
		t.Errorf("mean beside an observation of 3 is %v, want most of it", e.Mean[1])
	}
	if far := e.Mean[75]; math.Abs(float64(far)) > 0.7 {
		t.Errorf("mean 7.5 correlation lengths away is %v, want the map's mean of about 0", far)
	}
}

func TestWithoutNuggetObservationsAreHonouredExactly(t *testing.T) {
	// The cells of the second pair lie a metre beside those of the first.
	lon := []float64{0, 0.00001, 0.5, 1.0, 1.00001}
	s := Series{Grid: field.Grid{Lat: []float64{0}, Lon: lon}}
	s.Frames = []Frame{{Time: noon, Values: []float32{2, field.NaN(), field.NaN(), -1, field.NaN()}}}
	o := plain(s.Grid)
	o.Nugget, o.LengthKM = 0, 50
	e := fill(t, o, s, 0)
	const tolerance = 1e-3 // a metre in 50 km is 2e-5 of the covariance
	if math.Abs(float64(e.Mean[1])-2) > tolerance || math.Abs(float64(e.Mean[4])+1) > tolerance {
		t.Errorf("means beside 2 and -1 are %v and %v", e.Mean[1], e.Mean[4])
	}
	if e.Sigma[1] > 0.02 || e.Sigma[2] < 10*e.Sigma[1] {
		t.Errorf("sigma is %v beside an observation and %v between two", e.Sigma[1], e.Sigma[2])
	}
}

func TestSymmetricPairMeetsHalfway(t *testing.T) {
	s := line(10, []float32{1, field.NaN(), field.NaN(), field.NaN(), 5})
	e := fill(t, DefaultOI(s.Grid), s, 0)
	if d := math.Abs(float64(e.Mean[2]) - 3); d > 1e-4 {
		t.Errorf("midway between 1 and 5 is %v", e.Mean[2])
	}
	if e.Mean[1] >= e.Mean[2] || e.Mean[2] >= e.Mean[3] {
		t.Errorf("means %v do not run from 1 to 5", e.Mean)
	}
	if math.Abs(float64(e.Sigma[1]-e.Sigma[3])) > 1e-4 {
		t.Errorf("sigmas %v are not symmetric", e.Sigma)
	}
}

func TestYesterdayCountsMoreThanLastWeek(t *testing.T) {
	n := 41
	old, young, today := gappy(n), gappy(n), gappy(n)
	old[20], young[20] = 0, 10
	s := line(5, old, young, today)
	s.Frames[0].Time = noon.AddDate(0, 0, -6)
	e := fill(t, DefaultOI(s.Grid), s, 2)
	if e.Mean[20] < 5.5 {
		t.Errorf("between 10 yesterday and 0 eight days ago: %v", e.Mean[20])
	}
}

func TestConstantFieldIsFilledWithTheConstant(t *testing.T) {
	s := cloudy(40, 50, 3, 7)
	for _, f := range s.Frames {
		for i, v := range f.Values {
			if v == v {
				f.Values[i] = 287.15
			}
		}
	}
	e := fill(t, DefaultOI(s.Grid), s, 2)
	for i, m := range e.Mean {
		if math.Abs(float64(m)-287.15) > 1e-3 || e.Sigma[i] > 1e-3 {
			t.Fatalf("cell %d of a constant field is %v ± %v", i, m, e.Sigma[i])
		}
	}
}

// TestRandomFieldIsEstimatedAsWellAsTheExactConditionalMean draws fields with
// the covariance that OI assumes, and compares its error with that of the
// conditional mean given all observations, solved densely by another library.
func TestRandomFieldIsEstimatedAsWellAsTheExactConditionalMean(t *testing.T) {
	const side, frames, draws = 14, 3, 12
	lat, lon := make([]float64, side), make([]float64, side)
	for i := range lat {
		lat[i], lon[i] = float64(i)*0.05, float64(i)*0.05
	}
	grid := field.Grid{Lat: lat, Lon: lon}
	o := DefaultOI(grid)
	o.LengthKM, o.Days, o.Nugget = 30, 3, 0.1
	o.SmoothKM = 1e5
	n := grid.Len() * frames
	signal := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a + 1 {
			signal.SetSym(a, b, (1-o.Nugget)*exactCorrelation(grid, o, a, b))
		}
	}
	withNoise := mat.NewSymDense(n, nil)
	withNoise.CopySym(signal)
	for a := range n {
		withNoise.SetSym(a, a, 1)
	}
	var chol mat.Cholesky
	if !chol.Factorize(withNoise) {
		t.Fatal("covariance is not positive definite")
	}
	var lower mat.TriDense
	chol.LTo(&lower)
	rng := rand.New(rand.NewPCG(3, 0))
	var ours, exact float64
	for range draws {
		a, b := compareWithExact(t, exactCase{grid, o, signal, withNoise, &lower, rng})
		ours, exact = ours+a, exact+b
	}
	t.Logf("squared error %.4g, exact conditional mean %.4g, ratio %.3f", ours, exact, ours/exact)
	if ours > 1.05*exact {
		t.Errorf("squared error is %.3f times that of the exact conditional mean, want at most 1.05", ours/exact)
	}
}

func exactCorrelation(g field.Grid, o OI, a, b int) float64 {
	x0, y0, z0 := g.Cartesian(a%g.Len()/g.Width(), a%g.Width())
	x1, y1, z1 := g.Cartesian(b%g.Len()/g.Width(), b%g.Width())
	h := math.Sqrt((x0-x1)*(x0-x1) + (y0-y1)*(y0-y1) + (z0-z1)*(z0-z1))
	return math.Exp(-h/o.LengthKM - math.Abs(float64(a/g.Len()-b/g.Len()))/o.Days)
}

type exactCase struct {
	grid              field.Grid
	oi                OI
	signal, withNoise *mat.SymDense
	lower             *mat.TriDense
	rng               *rand.Rand
}

// compareWithExact draws one field, hides a third of each frame and returns
// the squared errors of both estimates over the gaps of the last.
func compareWithExact(t *testing.T, c exactCase) (ours, exact float64) {
	t.Helper()
	n, cells := c.signal.SymmetricDim(), c.grid.Len()
	white := mat.NewVecDense(n, nil)
	for i := range n {
		white.SetVec(i, c.rng.NormFloat64())
	}
	var truth mat.VecDense
	truth.MulVec(c.lower, white)
	s := Series{Grid: c.grid}
	var seen, hidden []int
	for f := range n / cells {
		values := make([]float32, cells)
		middle := c.rng.IntN(cells)
		for i := range values {
			values[i] = float32(truth.AtVec(f*cells + i))
			near := math.Hypot(float64(i/c.grid.Width()-middle/c.grid.Width()), float64(i%c.grid.Width()-middle%c.grid.Width())) < 6
			switch {
			case !near:
				seen = append(seen, f*cells+i)
			case f == n/cells-1:
				hidden = append(hidden, i)
			}
			if near {
				values[i] = field.NaN()
			}
		}
		s.Frames = append(s.Frames, Frame{Time: noon.AddDate(0, 0, f), Values: values})
	}
	target := len(s.Frames) - 1
	e := fill(t, c.oi, s, target)
	k := mat.NewSymDense(len(seen), nil)
	y := mat.NewVecDense(len(seen), nil)
	for i, a := range seen {
		y.SetVec(i, truth.AtVec(a))
		for j := range i + 1 {
			k.SetSym(i, j, c.withNoise.At(a, seen[j]))
		}
	}
	var chol mat.Cholesky
	chol.Factorize(k)
	var weights mat.VecDense
	if err := chol.SolveVecTo(&weights, y); err != nil {
		t.Fatal(err)
	}
	for _, i := range hidden {
		mean := 0.0
		for j, a := range seen {
			mean += weights.AtVec(j) * c.signal.At(target*cells+i, a)
		}
		want := truth.AtVec(target*cells + i)
		ours += (float64(e.Mean[i]) - want) * (float64(e.Mean[i]) - want)
		exact += (mean - want) * (mean - want)
	}
	return ours, exact
}

func TestEmptySeriesIsAnErrorThatSaysSo(t *testing.T) {
	s := line(1, gappy(5), gappy(5))
	_, err := DefaultOI(s.Grid).Fill(s, 1, nil)
	if !errors.Is(err, ErrNoObservations) {
		t.Errorf("Fill of nothing = %v, want ErrNoObservations", err)
	}
	for name, e := range map[string]Estimate{
		"climatology": Climatology(s, 1),
		"persistence": Persistence(s, 1, 24*time.Hour),
	} {
		for i := range e.Mean {
			if e.Mean[i] == e.Mean[i] || e.Sigma[i] == e.Sigma[i] {
				t.Errorf("%s of nothing is %v ± %v", name, e.Mean[i], e.Sigma[i])
			}
		}
	}
}

func TestValidateNamesEverySettingThatIsWrong(t *testing.T) {
	grid := line(1, gappy(3)).Grid
	tests := []struct {
		name string
		edit func(*OI)
		want string // part of the message; empty: valid
	}{
		{name: "defaults"},
		{name: "no length", edit: func(o *OI) { o.LengthKM = 0 }, want: "length is 0 km"},
		{name: "endless time", edit: func(o *OI) { o.Days = math.Inf(1) }, want: "time scale"},
		{name: "all noise", edit: func(o *OI) { o.Nugget = 1 }, want: "nugget is 1"},
		{name: "nugget unknown", edit: func(o *OI) { o.Nugget = math.NaN() }, want: "nugget"},
		{name: "no neighbours", edit: func(o *OI) { o.Neighbours = 0 }, want: "neighbours is 0"},
		{name: "a million neighbours", edit: func(o *OI) { o.Neighbours = 1e6 }, want: "1 to 1000"},
		{name: "empty sectors", edit: func(o *OI) { o.PerSector = 0 }, want: "per sector"},
		{name: "no spacing", edit: func(o *OI) { o.Spacing = 0 }, want: "spacing"},
		{name: "no smoothing", edit: func(o *OI) { o.SmoothKM = -1 }, want: "smoothing"},
		{name: "no sigma", edit: func(o *OI) { o.SigmaScale = 0 }, want: "sigma scale"},
		{name: "negative workers", edit: func(o *OI) { o.Workers = -1 }, want: "workers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := DefaultOI(grid)
			if tt.edit != nil {
				tt.edit(&o)
			}
			err := o.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

func TestFillEndsSoonAfterItIsCancelled(t *testing.T) {
	s := cloudy(80, 40, 6, 1)
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	_, err := DefaultOI(s.Grid).FillContext(ctx, s, 3, func(done, total int) {
		told = done
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	if most := 1 + runtime.GOMAXPROCS(0); told > most {
		t.Errorf("%d rows were done, want at most the %d under way", told, most)
	}
}
