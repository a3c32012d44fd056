package skill

import (
	"math"
	"math/rand/v2"
	"testing"
)

// rough returns a map of white noise, whose steps are alike everywhere.
func rough(height, width int, rng *rand.Rand) []float32 {
	out := make([]float32, height*width)
	for i := range out {
		out[i] = float32(rng.NormFloat64())
	}
	return out
}

func TestALatticeIsFoundWhereOneIs(t *testing.T) {
	const height, width = 60, 70
	rng := rand.New(rand.NewPCG(3, 4))
	plain, bricks := NewSteps(height, width), NewSteps(height, width)
	all := make([]bool, height*width)
	for i := range all {
		all[i] = true
	}
	for range 40 {
		values := rough(height, width, rng)
		plain.Add(values, all)
		level := float32(0)
		for j := range width {
			if j%5 == 3 { // a brick ends between columns 5k+2 and 5k+3
				level += 2 * float32(rng.NormFloat64())
			}
			for i := range height {
				values[i*width+j] += level
			}
		}
		bricks.Add(values, all)
	}
	if l := WorstLattice(plain, nil, 32); l.Sure() > 0.01 {
		t.Errorf("white noise has a lattice: %+v", l)
	}
	for name, control := range map[string]*Steps{"without a control": nil, "with a control": plain} {
		l := WorstLattice(bricks, control, 8)
		if l.Axis != AlongRows || l.Period != 5 || l.Phase != 2 || l.Ratio < 1.3 {
			t.Errorf("%s: bricks of five columns are %+v", name, l)
		}
	}
	if at, between := bricks.Wave(AlongRows, 5), bricks.Wave(AlongRows, 5.7); at < 3*between {
		t.Errorf("the wave of period 5 is %v, of period 5.7 %v", at, between)
	}
	if other := bricks.Wave(AlongColumns, 5); other > 0.05 {
		t.Errorf("bricks along rows make a wave of %v along columns", other)
	}
}

func TestStepsCountBetweenFilledCellsOnly(t *testing.T) {
	s := NewSteps(2, 3)
	s.Add([]float32{0, 1, 100, float32(math.NaN()), 3, 100}, []bool{true, true, false, false, true, false})
	if s.sum[AlongRows][0] != 1 || s.count[AlongRows][1] != 0 || s.sum[AlongColumns][0] != 2 || s.count[AlongColumns][0] != 1 {
		t.Errorf("steps are %v, numbers %v", s.sum, s.count)
	}
}
