package simulate

import (
	"math"
	"testing"
)

func changed(t *testing.T, c Config) *World {
	t.Helper()
	c.Product, c.Height, c.Width, c.Seed = "blk-chl", 16, 24, 3
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// shift returns the mean difference of what two worlds see of a day, in powers of
// ten, and how much it varies from cell to cell.
func shift(a, b *World, day int) (mean, spread float64, cells int) {
	x, y := a.Day(day).Seen.Values, b.Day(day).Seen.Values
	var sum, square float64
	for i := range x {
		if d := math.Log10(float64(x[i])) - math.Log10(float64(y[i])); !math.IsNaN(d) {
			sum, square, cells = sum+d, square+d*d, cells+1
		}
	}
	n := float64(max(cells, 1))
	return sum / n, math.Sqrt(max(square/n-sum/n*sum/n, 0)), cells
}

func observed(w *World, from, to int) (n int) {
	for d := from; d < to; d++ {
		n += w.Day(d).Seen.ObservedMask().Count()
	}
	return n
}

// The days before a change are those of the usual sensor to the bit; from its day on
// readings are biased and the swath is another, and the sea itself is the same.
func TestASensorIsReplacedOnItsDay(t *testing.T) {
	usual, later := changed(t, Config{}), changed(t, Config{Change: Change{Day: 10, Bias: 0.3, Swath: 0.5}})
	for _, day := range []int{0, 9} {
		a, b := usual.Day(day).Seen.Values, later.Day(day).Seen.Values
		for i := range a {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
				t.Fatalf("day %d is another before the change", day)
			}
		}
	}
	sum, n := 0.0, 0
	for day := 10; day < 20; day++ {
		if by, _, cells := shift(later, usual, day); cells > 20 {
			sum, n = sum+by, n+1
		}
	}
	if got := sum / float64(n); n < 3 || math.Abs(got-0.3) > 0.02 {
		t.Errorf("the new sensor reads %.3f powers of ten too much on %d days, want 0.3", got, n)
	}
	if few, many := observed(later, 10, 40), observed(usual, 10, 40); float64(few) > 0.9*float64(many) || few == 0 {
		t.Errorf("half the swath sees %d cells of the %d that the whole one does", few, many)
	}
	for i, v := range later.Day(12).Truth.Values {
		if u := usual.Day(12).Truth.Values[i]; math.Float32bits(u) != math.Float32bits(v) {
			t.Fatal("the sea has changed with the sensor")
		}
	}
}

func TestAGainStretchesReadings(t *testing.T) {
	usual, stretched := changed(t, Config{}), changed(t, Config{Change: Change{Day: 1, Gain: 2}})
	day := usual.Day(5).Seen.Values
	for i, v := range stretched.Day(5).Seen.Values {
		if want := 2 * math.Log10(float64(day[i])); !math.IsNaN(want) && math.Abs(math.Log10(float64(v))-want) > 1e-4 {
			t.Fatalf("cell %d reads %g, want %g", i, math.Log10(float64(v)), want)
		}
	}
}

// The error that a day shares is one number for all of its cells, and another on
// another day.
func TestADayBiasIsThatOfTheDay(t *testing.T) {
	usual, biased := changed(t, Config{}), changed(t, Config{DayBias: 0.2})
	var by []float64
	square := 0.0
	for day := range 40 {
		mean, spread, cells := shift(biased, usual, day)
		if cells < 10 {
			continue
		}
		if spread > 1e-4 {
			t.Errorf("day %d is biased by %.3f ± %.5f, from cell to cell", day, mean, spread)
		}
		by, square = append(by, mean), square+mean*mean
	}
	if sd := math.Sqrt(square / float64(len(by))); len(by) < 20 || sd < 0.13 || sd > 0.28 {
		t.Errorf("the standard deviation of %d days is %.3f, want 0.2", len(by), sd)
	}
}
