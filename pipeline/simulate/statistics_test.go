package simulate

import (
	"math"
	"testing"
	"time"

	"lacuna/pipeline/field"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/stat"
)

// overSea returns the values of f over the sea, in log10 where the product
// asks for it.
func overSea(w *World, f field.Field) []float64 {
	var out []float64
	for i, sea := range w.Sea() {
		if sea {
			v := float64(f.Values[i])
			if w.Product().Log {
				v = math.Log10(v)
			}
			out = append(out, v)
		}
	}
	return out
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// skipInShort skips a test that measures many days: what computes a day in
// parallel has tests of its own, which the race detector sees.
func skipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("measures many days")
	}
}

func TestTruthRemembersYesterdayAndForgetsTenDays(t *testing.T) {
	skipInShort(t)
	for _, product := range []string{"blk-chl", "med-sst"} {
		t.Run(product, func(t *testing.T) {
			w := newWorld(t, Config{Product: product, Seed: 3, Height: 60, Width: 84})
			const days = 3
			// The constant part of the field has no memory to measure: subtract
			// the mean of days far apart.
			mean := make([]float64, w.Sea().Count())
			for k := range days {
				for i, v := range overSea(w, w.Day(-400+67*k).Truth) {
					mean[i] += v / days
				}
			}
			var corr1, corr10, persist1, persist10, climate float64
			for k := range days {
				a := overSea(w, w.Day(20*k).Truth)
				b := overSea(w, w.Day(20*k+1).Truth)
				c := overSea(w, w.Day(20*k+10).Truth)
				corr1 += stat.Correlation(minus(a, mean), minus(b, mean), nil) / days
				corr10 += stat.Correlation(minus(a, mean), minus(c, mean), nil) / days
				persist1 += meanSquare(minus(a, b)) / days
				persist10 += meanSquare(minus(a, c)) / days
				climate += meanSquare(minus(b, mean)) / days
			}
			t.Logf("correlation of anomalies: %.3f after 1 day, %.3f after 10", corr1, corr10)
			t.Logf("mean square error: persistence %.4g after 1 day, %.4g after 10; climatology %.4g", persist1, persist10, climate)
			if corr1 < 0.8 || corr10 > corr1-0.1 {
				t.Errorf("correlation is %.3f after 1 day and %.3f after 10, want above 0.8 and clearly less", corr1, corr10)
			}
			if persist1 > climate/2 || persist10 < 4*persist1 {
				t.Errorf("persistence errs by %.4g after 1 day and %.4g after 10, climatology by %.4g", persist1, persist10, climate)
			}
		})
	}
}

func meanSquare(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return sum / float64(len(x))
}

func TestTruthHasARedSpectrum(t *testing.T) {
	skipInShort(t)
	w := newWorld(t, Config{Product: "blk-chl", Seed: 3, Height: 190, Width: 264})
	g := w.Grid()
	first, last := index(g.Lon, 30), index(g.Lon, 38)
	n := (last - first) / 2 * 2
	fft := fourier.NewFFT(n)
	power := make([]float64, n/2+1)
	for day := 0; day < 20; day += 10 {
		f := w.Day(day).Truth
		for i := index(g.Lat, 42.6); i < index(g.Lat, 43.6); i++ {
			x := make([]float64, n)
			for j := range x {
				x[j] = math.Log10(float64(f.Values[i*g.Width()+first+j]))
			}
			for k, c := range fft.Coefficients(nil, tapered(x)) {
				power[k] += real(c)*real(c) + imag(c)*imag(c)
			}
		}
	}
	stepKM := (g.Lon[1] - g.Lon[0]) * kmPerDegree * math.Cos(43*math.Pi/180)
	var logK, logP []float64
	for k := 1; k < len(power); k++ {
		if wave := float64(n) * stepKM / float64(k); wave < 200 && wave > 22 {
			logK, logP = append(logK, math.Log(float64(k))), append(logP, math.Log(power[k]))
		}
	}
	_, slope := stat.LinearRegression(logK, logP, nil, false)
	t.Logf("spectrum k^%.2f between 200 and 22 km", slope)
	if slope > -1.8 || slope < -3.4 {
		t.Errorf("spectrum k^%.2f, want between k^-2 and k^-3", slope)
	}
}

// tapered returns x without its trend, faded out at both ends.
func tapered(x []float64) []float64 {
	at := make([]float64, len(x))
	for i := range at {
		at[i] = float64(i)
	}
	a, b := stat.LinearRegression(at, x, nil, false)
	for i := range x {
		x[i] = (x[i] - a - b*at[i]) * (1 - math.Cos(2*math.Pi*(at[i]+0.5)/float64(len(x))))
	}
	return x
}

func index(axis []float64, v float64) int {
	for i, x := range axis {
		if x >= v {
			return i
		}
	}
	panic("beyond the axis")
}

func TestChlorophyllIsLogNormalWithABloom(t *testing.T) {
	skipInShort(t)
	w := newWorld(t, Config{Product: "blk-chl", Seed: 5, Height: 60, Width: 84, Start: time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)})
	monthly := make([]float64, 12)
	var all []float32
	for m := range monthly {
		d := w.Day(15 + 30*m)
		monthly[m] = stat.Mean(overSea(w, d.Truth), nil)
		for i, v := range d.Truth.Values {
			if w.Sea()[i] {
				all = append(all, v)
			}
		}
	}
	q := field.Quantiles(all, 0, 0.01, 0.5, 0.99, 1)
	t.Logf("quantiles 0, 1, 50, 99, 100 %%: %.3g; monthly means of log10: %.2f", q, monthly)
	if q[0] < 0.04 || q[1] < 0.05 || q[3] > 20 || q[4] > 25 || q[2] < 0.3 || q[2] > 2 {
		t.Errorf("quantiles %.3g, want 0.05..20 mg m-3 about 0.3..2", q)
	}
	if bloom := monthly[3]; bloom < monthly[0]+0.1 || bloom < monthly[6]+0.2 {
		t.Errorf("no bloom in April: %.2f", monthly)
	}
	// Log-normal: symmetric in log10 and not in the plain values.
	var plain, logs []float64
	for _, v := range overSea(w, w.Day(100).Truth) {
		logs, plain = append(logs, v), append(plain, math.Pow(10, v))
	}
	if s := stat.Skew(plain, nil); s < 1 || math.Abs(stat.Skew(logs, nil)) > s/2 {
		t.Errorf("skewness %.2f plain, %.2f in log10", s, stat.Skew(logs, nil))
	}
}

func TestTemperatureFollowsLatitudeAndSeason(t *testing.T) {
	skipInShort(t)
	w := newWorld(t, Config{Product: "med-sst", Seed: 5, Height: 60, Width: 200, Start: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)})
	winter, summer := w.Day(45).Truth, w.Day(225).Truth
	if d := stat.Mean(overSea(w, summer), nil) - stat.Mean(overSea(w, winter), nil); d < 8 || d > 15 {
		t.Errorf("summer is %.1f K warmer than winter", d)
	}
	g := w.Grid()
	var lat, temp []float64
	for i, v := range winter.Values {
		if w.Sea()[i] {
			lat, temp = append(lat, g.Lat[i/g.Width()]), append(temp, float64(v))
		}
	}
	if _, slope := stat.LinearRegression(lat, temp, nil, false); slope > -0.2 || slope < -0.8 {
		t.Errorf("temperature falls by %.2f K a degree of latitude", -slope)
	}
}

func TestCloudsAreCoherentPersistentAndVaried(t *testing.T) {
	skipInShort(t)
	tests := []struct {
		product   string
		width     int     // columns, beside 60 rows
		low, high float64 // mean share of missing sea
		minSD     float64 // least standard deviation of that share between days; a wide basin has less
	}{
		{"blk-chl", 84, 0.60, 0.75, 0.15},
		{"bal-nano", 84, 0.60, 0.80, 0.15},
		{"med-sst", 200, 0.45, 0.70, 0.05},
	}
	for _, tt := range tests {
		t.Run(tt.product, func(t *testing.T) {
			w := newWorld(t, Config{Product: tt.product, Seed: 11, Height: 60, Width: tt.width})
			ocean := make([]float32, w.Grid().Len()) // values do not matter: only gaps are tested
			const days = 60
			missing := make([]float64, days)
			near := 0.0
			var before, after []float64 // masks of consecutive days, all cells together
			var yesterday []float64
			for n := range days {
				seen := w.field(n, w.seen(w.observe(n, ocean, wholeDay)))
				today := make([]float64, 0, len(seen.Values))
				for i, sea := range w.Sea() {
					if sea {
						today = append(today, b2f(!seen.Observed(i)))
					}
				}
				missing[n] = stat.Mean(today, nil)
				if yesterday != nil {
					before, after = append(before, yesterday...), append(after, today...)
				}
				near += neighbourCorrelation(w, seen, 3) / days
				yesterday = today
			}
			mean, sd := stat.MeanStdDev(missing, nil)
			lag1 := stat.Correlation(before, after, nil)
			t.Logf("missing %.2f, sd between days %.2f, correlation after a day %.2f, over 3 cells %.2f", mean, sd, lag1, near)
			if mean < tt.low || mean > tt.high || sd < tt.minSD || sd > 0.28 {
				t.Errorf("missing %.2f with sd %.2f, want %.2f..%.2f with %.2f..0.28", mean, sd, tt.low, tt.high, tt.minSD)
			}
			if lag1 < 0.1 || lag1 > 0.8 {
				t.Errorf("masks of consecutive days correlate by %.2f, want some persistence", lag1)
			}
			if near < 0.5 {
				t.Errorf("correlation over 3 cells is %.2f: clouds are salt and pepper", near)
			}
		})
	}
}

func neighbourCorrelation(w *World, f field.Field, cells int) float64 {
	var a, b []float64
	width := w.Grid().Width()
	for i := range f.Values {
		if j := i + cells; i%width+cells < width && w.Sea()[i] && w.Sea()[j] {
			a, b = append(a, b2f(f.Observed(i))), append(b, b2f(f.Observed(j)))
		}
	}
	c := stat.Correlation(a, b, nil)
	if math.IsNaN(c) { // all or nothing
		return 1
	}
	return c
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// With a bias the sea under the clouds is richer than the sea between them;
// without, it is not.
func TestCloudsGatherOverRichWater(t *testing.T) {
	hidden := func(bias float64) float64 {
		w, err := New(Config{Product: "blk-chl", Height: 40, Width: 55, Days: 40, Seed: 5, CloudBias: bias})
		if err != nil {
			t.Fatal(err)
		}
		var under, between, n, m float64
		for d := range w.Days() {
			day := w.Day(d)
			for i, sea := range w.Sea() {
				switch v := math.Log10(float64(day.Truth.Values[i])); {
				case !sea:
				case math.IsNaN(float64(day.Seen.Values[i])):
					under, n = under+v, n+1
				default:
					between, m = between+v, m+1
				}
			}
		}
		if n == 0 || m == 0 {
			t.Fatalf("bias %g: %g cells hidden, %g seen", bias, n, m)
		}
		return under/n - between/m
	}
	fair, biased := hidden(0), hidden(1)
	if biased < fair+0.05 {
		t.Errorf("water under clouds is richer by %.3f decades with a bias and by %.3f without", biased, fair)
	}
	if hidden(-1) > fair-0.05 {
		t.Error("clouds gather over rich water where they should over poor")
	}
}
