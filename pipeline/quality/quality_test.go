package quality

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
)

var (
	nan  = field.NaN()
	day0 = time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
)

// calm is a map of noise of standard deviation 0.05 about a front: a step of
// one between two halves.
func calm(height, width int, name string) []float32 {
	out := make([]float32, height*width)
	noise.New(1, name).Normals(out, 0)
	for i := range out {
		out[i] *= 0.05
		if i%width >= width/2 {
			out[i]++
		}
	}
	return out
}

// sceneOf returns a scene of days, one after the other, on a grid of so many
// columns.
func sceneOf(width int, days ...[]float32) Scene {
	axis := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = 40 + 0.05*float64(i)
		}
		return out
	}
	s := Scene{Grid: field.Grid{Lat: axis(len(days[0]) / width), Lon: axis(width)}}
	for i, values := range days {
		s.Frames = append(s.Frames, Frame{Time: day0.AddDate(0, 0, i), Values: values})
	}
	return s
}

func TestASpikeIsFoundAndAFrontIsNot(t *testing.T) {
	const height, width, at = 40, 40, 10*40 + 8
	values := calm(height, width, "calm")
	values[at] += 1
	tests := on(t, "spike=6")
	for i, cause := range tests.Screen(sceneOf(width, values))[0] {
		row, col := i/width, i%width
		corner := (row < 2 || row > height-3) && (col < 2 || col > width-3)
		if (cause == BySpike) != (i == at) && !corner {
			t.Errorf("cell %d, %d: %v", row, col, cause)
		}
	}
	// The day before has the same value: it is a feature, not a spike.
	before := slices.Clone(values)
	if tests.Screen(sceneOf(width, before, values))[1][at] != Passed {
		t.Error("a value that the day before confirms is taken for a spike")
	}
	before[at] -= 1
	if tests.Screen(sceneOf(width, before, values))[1][at] != BySpike {
		t.Error("a value that the day before denies is not taken for a spike")
	}
}

func TestFewObservationsMakeNoSpike(t *testing.T) {
	values := slices.Repeat([]float32{nan}, 400)
	values[0], values[1], values[20] = 1, 1, 100
	counts := Counts{}
	on(t, "spike").Screen(sceneOf(20, values))[0].Count(counts)
	if len(counts) != 0 {
		t.Errorf("%v among three observations", counts)
	}
}

// A cloud in the middle, a coast at the left that the mask knows, and a strip at
// the right that no day shows though the mask calls it sea.
func TestOnlyTheEdgesOfCloudsAreEdges(t *testing.T) {
	const side = 20
	var days [][]float32
	for n := range fewestDays {
		values := make([]float32, side*side)
		for i := range values {
			row, col := i/side, i%side
			cloud := n == 0 && row >= 8 && row < 12 && col >= 8 && col < 12
			if col < 3 || col >= 17 || cloud {
				values[i] = nan
			}
		}
		days = append(days, values)
	}
	s := sceneOf(side, days...)
	s.Sea = make(field.Mask, side*side)
	for i := range s.Sea {
		s.Sea[i] = i%side >= 3
	}
	verdicts := on(t, "edge=0").Screen(s)
	for n, v := range verdicts {
		for i, cause := range v {
			row, col := i/side, i%side
			seen := !math.IsNaN(float64(days[n][i]))
			edge := n == 0 && seen && row >= 7 && row < 13 && col >= 7 && col < 13
			if (cause == ByEdge) != edge {
				t.Fatalf("day %d, cell %d, %d: %v, edge is %v", n, row, col, cause, edge)
			}
		}
	}
}

func TestAGridThatClosesOnItselfHasNoEdgeAtItsSeam(t *testing.T) {
	a := area{width: 6, height: 3, wraps: true}
	values := make([]float32, 18)
	values[6+5] = nan // last column of the middle row
	near := a.beside(values, slices.Repeat(field.Mask{true}, 18), 1)
	if !near[0] || !near[6] || !near[12] || near[7] {
		t.Errorf("beside a gap in the last column: %v", near)
	}
	a.wraps = false
	if near := a.beside(values, slices.Repeat(field.Mask{true}, 18), 1); near[6] {
		t.Error("the first column is beside the last on a grid that does not close")
	}
}

func TestTheRangeIsThatOfThePlace(t *testing.T) {
	const side, at = 20, 7*20 + 4
	var days [][]float32
	for n := range 8 {
		days = append(days, calm(side, side, "day"+string(rune('a'+n))))
	}
	days[3][at] = 1 // right for the other half of the map
	tests := on(t, "range")
	got := tests.Screen(sceneOf(side, days...))
	if got[3][at] != ByRange {
		t.Error("a value of another place passes")
	}
	counts := Counts{}
	for _, v := range got {
		v.Count(counts)
	}
	if counts["range"] > 3 { // five sigmas of eight days: the spread of few is itself uncertain
		t.Errorf("%d values refused, one was wrong", counts["range"])
	}
	if got := tests.Screen(sceneOf(side, days[:fewestDays-1]...)); got[3][at] != Passed {
		t.Error("a climatology of too few days refuses")
	}
	// A climatology that is given goes before the days.
	s := sceneOf(side, days...)
	s.Climatology = func(at time.Time) Climatology {
		k := Climatology{Mean: slices.Repeat([]float32{0.5}, side*side), Std: slices.Repeat([]float32{0.2}, side*side)}
		if at.Equal(day0) {
			k.Mean[0] = 9
		}
		return k
	}
	got = tests.Screen(s)
	if got[3][at] != Passed || got[0][0] != ByRange || got[1][0] != Passed {
		t.Error("the climatology that is given, of its day, does not decide")
	}
}

func TestScreeningLeavesTheFieldsAndTheirOrderAlone(t *testing.T) {
	p := plant(t, "blk-chl", [2]float64{0.6, 1.2}, [2]float64{0.3, 0.9}, [2]float64{1.2, 2})
	before := make([][]float32, len(p.Frames))
	for i, f := range p.Frames {
		before[i] = slices.Clone(f.Values)
	}
	tests := on(t, "range,edge,spike")
	forward := tests.Screen(p.Scene)
	for i, f := range p.Frames {
		for c, v := range f.Values {
			if math.Float32bits(v) != math.Float32bits(before[i][c]) {
				t.Fatal("screening changed a field")
			}
		}
	}
	slices.Reverse(p.Frames)
	backward := tests.Screen(p.Scene)
	for i := range forward {
		if !slices.Equal(forward[i], backward[len(backward)-1-i]) {
			t.Fatalf("day %d is judged otherwise when the fields come in another order", i)
		}
	}
}

func TestTestsAreReadAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{"", "spike=5", "range=4,range.file=clim.nc,range.mean=m,range.std=s,edge=0,edge.cells=3,spike=7.5"} {
		tests := on(t, text)
		if got := tests.String(); got != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	if tests := on(t, "edge"); !tests.Edge.On || tests.Edge.Cells != 1 || tests.Spike.On {
		t.Errorf("edge alone is %+v", tests)
	}
	for _, text := range []string{"spikes", "spike=x", "spike=1", "edge.cells=0,edge", "range=4,range.file=x.nc,range.mean="} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
