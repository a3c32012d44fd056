package infer

import (
	"math"
	"slices"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// A window must have a weight wherever it is the only one, and all windows
// together must cover the grid.
func TestWindowsCoverTheGridAndAgreeOnWeights(t *testing.T) {
	for _, tt := range []struct {
		name            string
		height, width   int
		periodic        bool
		window, overlap int
		want            int // number of windows
	}{
		{"a small grid is one window", 50, 70, false, 64, 16, 1},
		{"a long grid of few cells too", 20, 200, false, 64, 16, 1},
		{"a square is cut both ways", 150, 150, false, 64, 16, 9},
		{"the globe is one window and a seam", 45, 90, true, 64, 16, 1},
		{"the globe in pieces", 90, 180, true, 64, 16, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := basin(tt.height, tt.width, tt.periodic)
			tl := newTiling(s.Frames[0].Grid, tt.window, tt.overlap)
			all := tl.tiles(slices.Repeat([]bool{true}, len(s.Sea)))
			if len(all) != tt.want {
				t.Errorf("%d windows, want %d", len(all), tt.want)
			}
			if tl.height*tl.width > max(tt.window*tt.window, tt.height*(tt.width+2*tt.overlap)) {
				t.Errorf("windows of %d x %d are larger than asked for", tl.height, tl.width)
			}
			weight := tl.weights(all)
			b := blend{t: tl, sum: make([]float32, len(weight)), weight: weight}
			for _, at := range all {
				b.add(at, constant(2, tl.height*tl.width))
			}
			for i, v := range b.sum {
				if !(weight[i] > 0.1) || math.Abs(float64(v)-2) > 1e-5 {
					t.Fatalf("cell %d: weight %g, blend of 2 and 2 is %g", i, weight[i], v)
				}
			}
			need := make([]bool, len(s.Sea))
			if got := tl.tiles(need); len(got) != 0 {
				t.Errorf("%d windows though nothing is missing", len(got))
			}
			need[0] = true
			if got := tl.tiles(need); len(got) == 0 || len(got) > 4 {
				t.Errorf("%d windows for one cell", len(got))
			}
		})
	}
}

// smoother is a fake network: the mean of the visible cells within reach,
// twice, with the faults of a real one at the edge of its window, where it sees
// one side only.
func smoother(reach int) func(int, impute.Inputs) (impute.Prediction, error) {
	return func(_ int, in impute.Inputs) (impute.Prediction, error) {
		sum, count := make([]float32, in.Cells()), make([]float32, in.Cells())
		for i, visible := range in.Visible {
			if visible {
				sum[i], count[i] = in.Values[i], 1
			}
		}
		for range 2 {
			sum, count = boxSum(sum, in.Width, reach), boxSum(count, in.Width, reach)
		}
		p := impute.Prediction{Mean: sum, Sigma: constant(0.5, in.Cells())}
		for i := range sum {
			p.Mean[i] = sum[i] / (count[i] + 1)
			if in.Visible[i] {
				p.Mean[i], p.Sigma[i] = in.Values[i], 0
			}
		}
		return p, nil
	}
}

// boxSum returns the sum over squares of 2·reach+1 cells, nothing beyond the
// window.
func boxSum(x []float32, width, reach int) []float32 {
	height := len(x) / width
	across, out := make([]float32, len(x)), make([]float32, len(x))
	for i := range x {
		row, col := i/width, i%width
		for c := max(col-reach, 0); c <= min(col+reach, width-1); c++ {
			across[i] += x[row*width+c]
		}
	}
	for i := range x {
		row, col := i/width, i%width
		for r := max(row-reach, 0); r <= min(row+reach, height-1); r++ {
			out[i] += across[r*width+col]
		}
	}
	return out
}

// smoothResidual is a fake denoiser: the residual is smooth, and noise is not.
func smoothResidual(t float32, s conditioning, x []float32) []float32 {
	sin, cos := math.Sincos(math.Pi / 2 * float64(t))
	alpha, sigma := float32(cos), float32(sin)
	const reach = 2
	smooth := boxSum(x, s.window.Width, reach)
	for i := range smooth {
		// The mean of (2·reach+1)² independent numbers has their variance
		// divided by that number; a residual of variance one is shrunk to its
		// share of the sum.
		noise := sigma * sigma / ((2*reach + 1) * (2*reach + 1))
		smooth[i] *= alpha / (alpha*alpha + noise) / ((2*reach + 1) * (2*reach + 1))
		if s.window.Visible[i] || !s.window.Sea[i] {
			smooth[i] = 0
		}
	}
	return smooth
}

func drawnWith(t *testing.T, s Scene, window int) Analysis {
	t.Helper()
	m := fakeModel(fakeNetworks{predicts: smoother(4), cleaned: smoothResidual}, s)
	cfg := modelConfig(Standard)
	cfg.Network.WindowCells, cfg.Network.Members, cfg.Details = window, 4, true
	return fillWith(t, m, cfg, s)
}

func logs(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log10(float64(v))
	}
	return out
}

func TestTwoTilingsDifferByLessThanAQuarterOfTheSpread(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	s := basin(180, 200, false)
	whole, a, b := drawnWith(t, s, 512), drawnWith(t, s, 120), drawnWith(t, s, 72)
	if whole.Sampling.Tier != Standard {
		t.Fatalf("tier is %s", whole.Sampling.Tier)
	}
	for _, pair := range [][2]Analysis{{a, b}, {whole, a}} {
		differ, spread, n := 0.0, 0.0, 0.0
		for k := range a.Members {
			x, y := logs(pair[0].Members[k]), logs(pair[1].Members[k])
			mean := logs(pair[0].Value)
			for i, flags := range a.Flags {
				if flags == Interpolated {
					differ, spread, n = differ+(x[i]-y[i])*(x[i]-y[i]), spread+(x[i]-mean[i])*(x[i]-mean[i]), n+1
				}
			}
		}
		differ, spread = math.Sqrt(differ/n), math.Sqrt(spread/n)
		t.Logf("members of two tilings differ by %.4f, the spread is %.4f", differ, spread)
		if !(differ < spread/4) || !(spread > 0.01) {
			t.Errorf("members of two tilings differ by %.4f, the spread is %.4f: want less than a quarter", differ, spread)
		}
	}
}

func TestThereAreNoSeamsBetweenWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	s := basin(260, 260, false)
	scatter(&s)
	const window = 96
	whole, tiled := drawnWith(t, s, 512), drawnWith(t, s, window)
	tl := newTiling(s.Frames[0].Grid, window, window/4)
	border := make(map[int]bool) // columns beside the edges of windows
	for _, first := range tl.cols {
		for d := -2; d <= 1; d++ {
			border[first+d], border[first+tl.width+d] = true, true
		}
	}
	for name, pick := range map[string]func(Analysis) []float64{
		"mean":   func(a Analysis) []float64 { return logs(a.Value) },
		"member": func(a Analysis) []float64 { return logs(a.Members[0]) },
	} {
		at, inside := gradients(s, pick(tiled), border)
		atWhole, insideWhole := gradients(s, pick(whole), border)
		ratio := at / atWhole / (inside / insideWhole)
		t.Logf("%s: gradient at borders over that of the interior is %.4f of the whole window's", name, ratio)
		if math.Abs(ratio-1) > 0.02 {
			t.Errorf("%s: gradient across borders is %.3f times the one elsewhere, want within 2 %%", name, ratio)
		}
	}
}

// scatter puts the scene's observations at random cells: a few everywhere.
func scatter(s *Scene) {
	u := make([]float32, len(s.Sea))
	noise.New(5, "scatter").Uniforms(u, 0)
	for i := range u {
		s.Frames[0].Values[i] = field.NaN()
		if s.Sea[i] && u[i] < 0.08 {
			s.Frames[0].Values[i] = float32(math.Pow(10, float64(u[i])*10-0.4))
		}
	}
}

// gradients returns the mean difference between neighbours in a row, at border
// columns and elsewhere.
func gradients(s Scene, values []float64, border map[int]bool) (at, inside float64) {
	width := s.Frames[0].Grid.Width()
	var sum, n [2]float64
	for i := 1; i < len(values); i++ {
		if d := math.Abs(values[i] - values[i-1]); i%width != 0 && !math.IsNaN(d) {
			k := 0
			if border[i%width] {
				k = 1
			}
			sum[k], n[k] = sum[k]+d, n[k]+1
		}
	}
	return sum[1] / n[1], sum[0] / n[0]
}

func TestTheGlobeHasNoSeam(t *testing.T) {
	s := basin(60, 120, true)
	turn := func(s Scene, by int) Scene {
		width := s.Frames[0].Grid.Width()
		out := s
		out.Frames, out.History, out.Sea = slices.Clone(s.Frames), nil, make(field.Mask, len(s.Sea))
		out.Frames[0].Values = make([]float32, len(s.Sea))
		for i := range s.Sea {
			to := i/width*width + (i%width+by)%width
			out.Sea[to], out.Frames[0].Values[to] = s.Sea[i], s.Frames[0].Values[i]
		}
		return out
	}
	for _, window := range []int{512, 64} { // one window and several
		cfg := modelConfig(Fast)
		cfg.Network.WindowCells, cfg.Network.OverlapCells = window, 32
		fillIt := func(s Scene) Analysis { return fillWith(t, fakeModel(fakeNetworks{predicts: smoother(2)}, s), cfg, s) }
		const by = 60
		straight, turned := fillIt(turn(s, 0)), fillIt(turn(s, by))
		width := s.Frames[0].Grid.Width()
		for i, flags := range straight.Flags {
			to := i/width*width + (i%width+by)%width
			d := math.Abs(math.Log10(float64(straight.Value[i])) - math.Log10(float64(turned.Value[to])))
			if flags == Interpolated && !(d < 1e-3) {
				t.Fatalf("window %d: cell %d is %g, and %g when the globe is turned", window, i, straight.Value[i], turned.Value[to])
			}
		}
	}
}

func TestDistancesGoRoundTheGlobe(t *testing.T) {
	s := basin(10, 40, true)
	visible := make([]bool, len(s.Sea))
	visible[0] = true
	if d := distances(visible, s.Frames[0].Grid); d[39] != 1 || d[20] != 20 {
		t.Errorf("distances %g and %g, want 1 across the seam and 20 at the far side", d[39], d[20])
	}
}
