package skill

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var noon = time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)

// scoredDay is a day whose errors are, at 1 cell and at 20 cells from the nearest
// observation, so many times as large as their sigma.
func scoredDay(day int, near, far float64) ScoredDay {
	const height, width = 40, 60
	rng := rand.New(rand.NewPCG(uint64(day), 7))
	s := Sample{
		Day: noon.AddDate(0, 0, day), Height: height, Width: width,
		Truth: make([]float32, height*width), Mean: make([]float32, height*width), Sigma: make([]float32, height*width),
		Visible: make([]bool, height*width), Scored: make([]bool, height*width),
	}
	for c := range s.Truth {
		times := 0.0
		switch c % width {
		case 0:
			s.Visible[c] = true
		case 1:
			times = near
		case 20:
			times = far
		}
		s.Scored[c] = times > 0
		s.Sigma[c] = 0.1 + float32(rng.Float64())
		s.Mean[c] = float32(times * rng.NormFloat64() * float64(s.Sigma[c]))
	}
	return ScoreDay(s)
}

func days(n int, near, far float64) (all []ScoredDay) {
	for d := range n {
		all = append(all, scoredDay(d, near, far))
	}
	return all
}

func TestAWideningIsTheFactorThatErrorsHave(t *testing.T) {
	w := Widen(days(50, 0.6, 2), noon.AddDate(0, 0, 50))
	f := w.Factors(Unchanged())
	// A twelfth of the weight is still with the factor 1 after fifty days.
	if near, far := f.At(1), f.At(22); math.Abs(near-0.6) > 0.06 || math.Abs(far-2) > 0.2 || w.Days != 50 {
		t.Errorf("factors of %d days are %.2f near and %.2f far, want 0.6 and 2", w.Days, near, far)
	}
	for d := 0.5; d < 40; d += 0.01 {
		if a, b := f.At(d), f.At(d+0.01); math.Abs(b-a) > 0.02 {
			t.Fatalf("the factor steps from %v to %v at %v cells", a, b, d)
		}
	}
}

func TestFewScoredDaysMoveSigmaALittle(t *testing.T) {
	assumed := Factors{1.5, 1.5, 1.5, 1.5, 1.5}
	before := 1.5
	for _, n := range []int{0, 1, 3, 10, 60} {
		got := Widen(days(n, 0.5, 0.5), noon.AddDate(1, 0, 0)).Factors(assumed).At(1)
		if n > 0 && got >= before {
			t.Errorf("after %d days the factor is %.2f, after fewer %.2f; want it to go on falling to 0.5", n, got, before)
		}
		before = got
	}
	if one := Widen(days(1, 0.5, 0.5), noon.AddDate(1, 0, 0)).Factors(assumed).At(1); one < 1 {
		t.Errorf("one day moves the factor from 1.5 to %.2f", one)
	}
	if f := (Widening{}).Factors(assumed); f != assumed {
		t.Errorf("no day makes %v of %v", f, assumed)
	}
}

// What a day shows is known after it: neither it nor a later one calibrates it.
func TestAWideningDoesNotKnowTheFuture(t *testing.T) {
	past := days(10, 1, 1)
	at := noon.AddDate(0, 0, 10)
	with := append(append([]ScoredDay{}, past...), scoredDay(10, 50, 50), scoredDay(11, 50, 50), scoredDay(300, 50, 50))
	if a, b := Widen(past, at), Widen(with, at); a != b {
		t.Errorf("days from the tenth on change the calibration of the tenth: %+v, want %+v", b, a)
	}
	if a, b := Widen(past, at), Widen(with, at.AddDate(0, 0, 1)); a == b {
		t.Error("the tenth day does not change the calibration of the eleventh")
	}
}

func TestSigmasAreMatchedInEachClassOfDistance(t *testing.T) {
	var sigma, other []float32
	var away []float64
	for i := range 4000 {
		d := float64(1 + i%40)
		sigma, away = append(sigma, 0.2+float32(i%7)/10), append(away, d)
		times := float32(1.5)
		if d > 15.5 {
			times = 3
		}
		other = append(other, times*sigma[i])
	}
	f := Matching(sigma, other, away)
	if math.Abs(f.At(1)-1.5) > 0.1 || math.Abs(f.At(30)-3) > 0.1 {
		t.Errorf("factors are %v near and %v far, want 1.5 and 3", f.At(1), f.At(30))
	}
	if got := Matching(nil, nil, nil); got != Unchanged() {
		t.Errorf("without a cell the factors are %v", got)
	}
}
