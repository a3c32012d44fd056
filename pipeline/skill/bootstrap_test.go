package skill

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func dayOf(n int) time.Time { return time.Date(2021, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

// noisy returns the losses of two methods on the same days, the first better
// by gain in the mean, with noise that is shared by runs of days.
func noisy(days, run int, gain float64, rng *rand.Rand) (a, b []Loss) {
	const noise = 0.3
	shared := 0.0
	for d := range days {
		if d%run == 0 {
			shared = rng.NormFloat64()
		}
		pixels := float64(50 + rng.IntN(100))
		base := 1 + rng.Float64()
		b = append(b, Loss{Day: dayOf(d), Sum: base * pixels, Pixels: pixels})
		a = append(a, Loss{Day: dayOf(d), Sum: (base - gain + noise*shared) * pixels, Pixels: pixels})
	}
	return a, b
}

func TestDifferenceIsPooledOverPixels(t *testing.T) {
	var a, b []Loss
	for d := range 40 {
		n := float64(10 * (1 + d%2)) // every other day has twice the pixels
		b = append(b, Loss{Day: dayOf(d), Sum: 2 * n, Pixels: n})
		a = append(a, Loss{Day: dayOf(d), Sum: (2 - float64(d%2)) * n, Pixels: n})
	}
	got, err := DefaultBootstrap().Paired(a, b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "difference", got.Mean, -2.0/3, exact) // -1 on two thirds of the pixels
	near(t, "relative", got.Relative, -1.0/3, exact)
	if got.P > 0.001 || got.Interval.High >= 0 {
		t.Errorf("a gain on every block is doubted: %+v", got)
	}
}

// TestIntervalHoldsTheTruthAsOftenAsItSays draws many data sets with errors
// that persist for eight days: blocks of eight must cover, single days must
// not.
func TestIntervalHoldsTheTruthAsOftenAsItSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const sets, gain = 150, 0.1
	covered := map[int]int{}
	for set := range sets {
		a, b := noisy(240, 8, gain, rng)
		for _, length := range []int{8, 1} {
			o := Bootstrap{Draws: 200, BlockDays: length, Confidence: 0.9, Seed: uint64(set)}
			d, err := o.Paired(a, b)
			if err != nil {
				t.Fatal(err)
			}
			if d.Interval.Low <= -gain && -gain <= d.Interval.High {
				covered[length]++
			}
		}
	}
	if share := float64(covered[8]) / sets; share < 0.81 || share > 0.97 {
		t.Errorf("90 %% intervals over blocks cover %.2f", share)
	}
	if share := float64(covered[1]) / sets; share > 0.65 {
		t.Errorf("intervals over single days cover %.2f: the noise of the test does not persist", share)
	}
}

func TestPIsUniformWhereThereIsNoDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const sets = 200
	small := 0
	for set := range sets {
		a, b := noisy(160, 4, 0, rng)
		o := Bootstrap{Draws: 200, BlockDays: 4, Confidence: 0.95, Seed: uint64(set)}
		d, err := o.Paired(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if d.P <= 0.1 {
			small++
		}
	}
	if share := float64(small) / sets; math.Abs(share-0.1) > 0.07 {
		t.Errorf("p is at most 0.1 in %.3f of cases without a difference", share)
	}
}

func TestBootstrapIsRepeatable(t *testing.T) {
	a, b := noisy(100, 3, 0.05, rand.New(rand.NewPCG(1, 1)))
	first, _ := DefaultBootstrap().Paired(a, b)
	second, _ := DefaultBootstrap().Paired(a, b)
	if first != second {
		t.Errorf("%+v and then %+v", first, second)
	}
}

func TestLossesOfDifferentSamplesAreNotPaired(t *testing.T) {
	a, b := noisy(50, 3, 0, rand.New(rand.NewPCG(1, 1)))
	for name, edit := range map[string]func() ([]Loss, []Loss){
		"samples against": func() ([]Loss, []Loss) { return a[1:], b },
		"sample 2 is": func() ([]Loss, []Loss) {
			c := append([]Loss(nil), a...)
			c[2].Pixels++
			return c, b
		},
		"sample 0 is":                       func() ([]Loss, []Loss) { return a[1:], b[:len(b)-1] },
		"5 days judge, which make 2 blocks": func() ([]Loss, []Loss) { return a[:5], b[:5] },
	} {
		x, y := edit()
		if _, err := DefaultBootstrap().Paired(x, y); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error is %v, want %q in it", err, name)
		}
	}
}

// With the 22 days that judge of the first ninety, a gain is found where it is
// large, and chance is taken for a gain no more often than with many days.
func TestFewDaysAreComparedInShorterBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const sets = 400
	found, fooled := 0, 0
	for set := range sets {
		o := DefaultBootstrap()
		o.Draws, o.Seed = 400, uint64(set)
		a, b := noisy(22, 4, 0.75, rng)
		d, err := o.Paired(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if d.Interval.High < 0 && d.P <= 0.05 {
			found++
		}
		a, b = noisy(22, 4, 0, rng)
		if d, err = o.Paired(a, b); err != nil {
			t.Fatal(err)
		}
		if d.Interval.High < 0 && d.P <= 0.05 {
			fooled++
		}
	}
	t.Logf("found %d, fooled %d of %d", found, fooled, sets)
	if share := float64(found) / sets; share < 0.8 {
		t.Errorf("half of the error gone is found in %.2f of cases", share)
	}
	if share := float64(fooled) / sets; share > 0.06 {
		t.Errorf("chance is taken for a gain in %.3f of cases", share) // one side of 0.05 is 0.025
	}
	a, b := noisy(LeastDays, 2, 0.5, rng)
	if _, err := DefaultBootstrap().Paired(a, b); err != nil {
		t.Errorf("%d days: %v", LeastDays, err)
	}
	if _, err := DefaultBootstrap().Paired(a[1:], b[1:]); err == nil {
		t.Errorf("%d days are compared", LeastDays-1)
	}
}

func TestEnoughDaysAreComparedAsBefore(t *testing.T) {
	a, b := noisy(200, 8, 0.1, rand.New(rand.NewPCG(1, 1)))
	d, err := DefaultBootstrap().Paired(a, b)
	if err != nil || d.Blocks != 25 {
		t.Errorf("%d blocks of 200 days, %v", d.Blocks, err)
	}
}
