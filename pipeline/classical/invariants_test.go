package classical

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// methods returns all methods of the package under one signature.
func methods(t *testing.T, g field.Grid) map[string]func(Series, int) Estimate {
	return map[string]func(Series, int) Estimate{
		"climatology": Climatology,
		"persistence": func(s Series, target int) Estimate { return Persistence(s, target, 30*24*time.Hour) },
		"oi":          func(s Series, target int) Estimate { return fill(t, DefaultOI(g), s, target) },
	}
}

// same reports whether two estimates are equal bit for bit.
func same(a, b Estimate) bool {
	equal := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	return slices.EqualFunc(a.Mean, b.Mean, equal) && slices.EqualFunc(a.Sigma, b.Sigma, equal)
}

// apart returns the largest difference of two estimates.
func apart(a, b Estimate) float64 {
	most := 0.0
	for i := range a.Mean {
		most = max(most, math.Abs(float64(a.Mean[i]-b.Mean[i])), math.Abs(float64(a.Sigma[i]-b.Sigma[i])))
	}
	return most
}

func clone(s Series) Series {
	s.Frames = slices.Clone(s.Frames)
	for i := range s.Frames {
		s.Frames[i].Values = slices.Clone(s.Frames[i].Values)
	}
	return s
}

// coast makes the first third of the columns land.
func coast(s Series) Series {
	s.Sea = make(field.Mask, s.Grid.Len())
	for c := range s.Sea {
		s.Sea[c] = c%s.Grid.Width() >= s.Grid.Width()/3
	}
	return s
}

func TestValuesOnLandNeitherLeakNorAreFilled(t *testing.T) {
	s := coast(cloudy(30, 36, 4, 2))
	other := clone(s)
	for f := range other.Frames {
		for c, sea := range s.Sea {
			if !sea {
				other.Frames[f].Values[c] = 1e6
			}
		}
	}
	for name, method := range methods(t, s.Grid) {
		e := method(s, 3)
		if !same(e, method(other, 3)) {
			t.Errorf("%s changes with values on land", name)
		}
		for c, sea := range s.Sea {
			filled := e.Mean[c] == e.Mean[c] && e.Sigma[c] == e.Sigma[c]
			if filled != sea {
				t.Fatalf("%s: cell %d, sea %v, is %v ± %v", name, c, sea, e.Mean[c], e.Sigma[c])
			}
		}
	}
}

func TestHiddenCellsOfAnOverlayDoNotLeak(t *testing.T) {
	s := cloudy(30, 36, 20, 3)
	other := clone(s)
	tuning := DefaultTuning()
	trial := newTrial(s, tuning, DefaultOI(s.Grid))
	l := trial.overlays[0]
	for _, c := range l.hidden {
		other.Frames[l.target].Values[c] = 1e6
	}
	seen, target := trial.covered(l)
	leaky, _ := newTrial(other, tuning, DefaultOI(s.Grid)).covered(l)
	if len(l.hidden) < leastCells {
		t.Fatalf("overlay hides %d cells", len(l.hidden))
	}
	for name, method := range methods(t, s.Grid) {
		if !same(method(seen, target), method(leaky, target)) {
			t.Errorf("%s changes with the values under the overlay", name)
		}
	}
	honest := trial.missesOn(l, []OI{DefaultOI(s.Grid)})[0]
	cheat := newTrial(other, tuning, DefaultOI(s.Grid)).missesOn(l, []OI{DefaultOI(s.Grid)})[0]
	for i := range honest {
		if honest[i].sigma != cheat[i].sigma || math.Abs(cheat[i].by) < 9e5 {
			t.Fatalf("hidden cell %d: %+v with the truth under the overlay, %+v with 1e6", i, honest[i], cheat[i])
		}
	}
}

func TestInfinitiesAreGaps(t *testing.T) {
	s := cloudy(20, 20, 3, 4)
	other := clone(s)
	for f := range other.Frames {
		for c, v := range other.Frames[f].Values {
			if v != v {
				other.Frames[f].Values[c] = float32(math.Inf(1 - 2*(c%2)))
			}
		}
	}
	for name, method := range methods(t, s.Grid) {
		if !same(method(s, 2), method(other, 2)) {
			t.Errorf("%s takes an infinity for a value", name)
		}
	}
}

func TestFramesOutsideTheWindowCannotMatter(t *testing.T) {
	s := cloudy(20, 24, 9, 5)
	other := clone(s)
	const day = 24 * time.Hour
	for _, f := range []int{0, 1, 7, 8} {
		for c := range other.Frames[f].Values {
			other.Frames[f].Values[c] = 1e6
		}
	}
	a, target := s.Window(4, 2*day, 2*day)
	b, _ := other.Window(4, 2*day, 2*day)
	if len(a.Frames) != 5 || !a.Frames[target].Time.Equal(s.Frames[4].Time) {
		t.Fatalf("window has %d frames and its target is %v", len(a.Frames), a.Frames[target].Time)
	}
	for name, method := range methods(t, s.Grid) {
		if !same(method(a, target), method(b, target)) {
			t.Errorf("%s sees frames outside its window", name)
		}
	}
	past, last := s.Window(4, 2*day, 0)
	if len(past.Frames) != 3 || last != 2 {
		t.Errorf("past-only window has %d frames, target %d", len(past.Frames), last)
	}
}

func TestTargetIsTheRequestedFrame(t *testing.T) {
	s := cloudy(20, 24, 5, 6)
	for target := range s.Frames {
		e := fill(t, DefaultOI(s.Grid), s, target)
		for c, v := range s.Frames[target].Values {
			if v == v && e.Mean[c] != v {
				t.Fatalf("target %d: observed %v at cell %d became %v", target, v, c, e.Mean[c])
			}
		}
	}
}

func TestEmptyTargetIsFilledFromItsNeighbours(t *testing.T) {
	s := cloudy(30, 30, 5, 8)
	truth := s.Frames[2].Values
	s.Frames[2].Values = gappy(len(truth))
	e := fill(t, DefaultOI(s.Grid), s, 2)
	clim := Climatology(s, 2)
	ours, theirs := 0.0, 0.0
	for c, v := range truth {
		if v == v {
			ours += math.Pow(float64(e.Mean[c]-v), 2)
			theirs += math.Pow(float64(clim.Mean[c]-v), 2)
		}
		if e.Mean[c] != e.Mean[c] || !(e.Sigma[c] > 0) {
			t.Fatalf("cell %d is %v ± %v", c, e.Mean[c], e.Sigma[c])
		}
	}
	if ours >= theirs {
		t.Errorf("squared error %v from neighbouring days is no better than %v of the climatology", ours, theirs)
	}
}

func TestWorkersDoNotChangeABit(t *testing.T) {
	s := coast(cloudy(50, 60, 6, 9))
	one, four := DefaultOI(s.Grid), DefaultOI(s.Grid)
	one.Workers, four.Workers = 1, 4
	if !same(fill(t, one, s, 5), fill(t, four, s, 5)) {
		t.Error("1 and 4 workers differ")
	}
	rows, calls := 0, 0
	_, err := four.Fill(s, 5, func(done, total int) {
		calls++
		if done != calls || done > total {
			t.Errorf("call %d says %d of %d", calls, done, total)
		}
		rows = total
	})
	if err != nil || calls != rows {
		t.Errorf("%d progress calls for %d rows, error %v", calls, rows, err)
	}
}

// globe returns a series on a global grid whose first column is rotated by
// the given number of columns, and the column where each one came from.
func globe(rotate int) Series {
	const height, width = 20, 40
	base := cloudy(height, width, 3, 10)
	lat, lon := make([]float64, height), make([]float64, width)
	for i := range lat {
		lat[i] = 85.5 - 9*float64(i)
	}
	for j := range lon {
		lon[j] = 4.5 + 9*float64(j+rotate)
		if rotate > 0 {
			lon[j] -= 180
		}
	}
	s := Series{Grid: field.Grid{Lat: lat, Lon: lon}}
	for _, f := range base.Frames {
		values := make([]float32, len(f.Values))
		for c := range values {
			from := ((c%width+rotate-20*min(rotate, 1))%width + width) % width
			values[c] = f.Values[c/width*width+from]
		}
		s.Frames = append(s.Frames, Frame{Time: f.Time, Values: values})
	}
	return s
}

func TestEstimatesDoNotChangeAtTheDateLine(t *testing.T) {
	const rotate = 10
	s, turned := globe(0), globe(rotate)
	w := s.Grid.Width()
	for name, method := range methods(t, s.Grid) {
		a, b := method(s, 2), method(turned, 2)
		back := gaps(len(a.Mean))
		for c := range b.Mean {
			to := c/w*w + ((c%w+rotate-20)%w+w)%w
			back.Mean[to], back.Sigma[to] = b.Mean[c], b.Sigma[c]
		}
		const tolerance = 1e-4 // for unit variance: rounding of positions
		if d := apart(a, back); d > tolerance {
			t.Errorf("%s differs by %g between a grid from 0 and one from -90 degrees east", name, d)
		}
	}
}

func TestFlippedAxesGiveTheFlippedMap(t *testing.T) {
	s := cloudy(16, 18, 3, 11)
	h, w := s.Grid.Height(), s.Grid.Width()
	flipped := clone(s)
	flipped.Grid = field.Grid{Lat: slices.Clone(s.Grid.Lat), Lon: s.Grid.Lon}
	slices.Reverse(flipped.Grid.Lat)
	for f := range s.Frames {
		for c, v := range s.Frames[f].Values {
			flipped.Frames[f].Values[(h-1-c/w)*w+c%w] = v
		}
	}
	o := plain(s.Grid)
	o.Neighbours = 60
	a, b := fill(t, o, s, 2), fill(t, o, flipped, 2)
	back := gaps(len(a.Mean))
	for c := range b.Mean {
		back.Mean[(h-1-c/w)*w+c%w], back.Sigma[(h-1-c/w)*w+c%w] = b.Mean[c], b.Sigma[c]
	}
	// Rows of this grid are not a multiple of the coarse cells of the mean map,
	// which therefore begin elsewhere.
	const tolerance = 0.05
	if d := apart(a, back); d > tolerance {
		t.Errorf("estimates differ by %g when latitude runs the other way", d)
	}
}
