package scenes

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// series is a sea of slow waves and fast noise, under bands of cloud.
func series(t *testing.T, height, width, days int) samples.Series {
	t.Helper()
	grid := field.Grid{Lat: make([]float64, height), Lon: make([]float64, width)}
	for i := range grid.Lat {
		grid.Lat[i] = 40 + 0.05*float64(i)
	}
	for j := range grid.Lon {
		grid.Lon[j] = 0.06 * float64(j)
	}
	var fields []field.Field
	for d := range days {
		f := field.Field{Grid: grid, Time: time.Date(2021, 3, 1+d, 12, 0, 0, 0, time.UTC), Values: make([]float32, grid.Len())}
		rough := make([]float32, grid.Len())
		noise.New(1, "scenes").Normals(rough, uint64(d))
		for i := range f.Values {
			y, x, n := float64(i/width), float64(i%width), float64(d)
			f.Values[i] = float32(math.Pow(10, 0.5*math.Sin(y/9+n/7)+0.3*math.Cos(x/11-n/5)+0.1*float64(rough[i])))
			if math.Sin(y/6+2*n)+math.Sin(x/8+3*n) > -0.1 {
				f.Values[i] = field.NaN()
			}
		}
		fields = append(fields, f)
	}
	s, err := samples.New(fields, slices.Repeat([]bool{true}, grid.Len()), field.Transform{Log10: true, Floor: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func quiet(int, int) {}

func judge(t *testing.T, c Config, sub Subject) Report {
	t.Helper()
	r, err := c.Judge(t.Context(), sub, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Optimal interpolation judged against itself is no better and no worse, and
// the classes are parts of the whole.
func TestOptimalInterpolationIsAsGoodAsItself(t *testing.T) {
	s := series(t, 40, 50, 60)
	fill := infer.DefaultConfig()
	fill = interpolate(s.Grid, fill)
	c := DefaultConfig()
	c.Scenes, c.MinCells = 6, 50
	r := judge(t, c, Subject{Series: s, Fill: fill})
	if r.Scenes != 6 || !(r.Overall.MSE > 0) || r.Overall.MSE != r.Overall.MSEOI || r.Overall.Coverage != r.Overall.CoverageOI {
		t.Errorf("overall is %+v of %d scenes", r.Overall, r.Scenes)
	}
	cells, squares, last := 0, 0.0, 0.0
	for _, k := range r.Classes {
		cells, squares = cells+k.Cells, squares+k.MSE*float64(k.Cells)
		if k.AboveKM < last || k.Cells == 0 {
			t.Errorf("class %+v is out of order or empty", k)
		}
		last = k.AboveKM
	}
	if cells != r.Overall.Cells || math.Abs(squares/float64(cells)-r.Overall.MSE) > 1e-9 {
		t.Errorf("classes hold %d cells with MSE %g, all are %d with %g", cells, squares/float64(cells), r.Overall.Cells, r.Overall.MSE)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "all") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}

// Hidden values must not leak: other values there change the truth and nothing
// in the answer.
func TestHiddenValuesDoNotLeak(t *testing.T) {
	s := series(t, 30, 40, 60)
	c := DefaultConfig()
	c.MinCells = 50
	targets, _, err := c.targets(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range c.lay(s, targets) {
		for i, hidden := range sc.scored {
			if v := sc.Frames[0].Values[i]; hidden && v == v {
				t.Fatalf("scene %d: hidden cell %d is %g", sc.number, i, v)
			}
		}
		sc.surround(Subject{Series: s, Fill: infer.DefaultConfig()}, nil)
		for _, h := range sc.History {
			if h.Time.Equal(sc.Frames[0].Time) || h.Time.After(sc.Frames[0].Time) {
				t.Fatalf("scene of %v sees %v", sc.Frames[0].Time, h.Time)
			}
		}
	}
}

// Intervals of persistence are far off by distance; half of the scenes mends
// the other half.
func TestCalibrationByDistanceMendsIntervals(t *testing.T) {
	s := series(t, 40, 50, 80)
	fill := infer.DefaultConfig()
	fill.Method = "climatology"
	c := DefaultConfig()
	c.Scenes, c.MinCells = 16, 50
	r := judge(t, c, Subject{Series: s, Fill: fill})
	if raw, mended := math.Abs(r.Overall.Coverage-0.9), math.Abs(r.Overall.CoverageCalibrated-0.9); !(mended < 0.03) || !(mended < raw) {
		t.Errorf("90 %% intervals cover %.3f, calibrated %.3f", r.Overall.Coverage, r.Overall.CoverageCalibrated)
	}
	if len(r.Calibration.Factors) != 1 || len(r.Calibration.Factors[0]) != len(c.EdgesKM)+1 {
		t.Errorf("calibration is %+v", r.Calibration)
	}
}

func TestAPictureShowsTheRequestedDay(t *testing.T) {
	s := series(t, 30, 40, 60)
	sub := Subject{Series: s, Fill: infer.DefaultConfig()}
	m, err := DefaultConfig().Picture(t.Context(), sub, s.Days[20].Time, "chlorophyll")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(m.Title, "2021-03-21") || len(m.Panels) != 3 {
		t.Fatalf("%q with %d panels", m.Title, len(m.Panels))
	}
	for i, v := range s.Days[20].Values {
		if after := m.Panels[1].Values[i]; after != after || v == v && math.Abs(float64(after-v)) > 1e-5 {
			t.Fatalf("cell %d was %g and is drawn as %g", i, v, after)
		}
	}
	if _, err := DefaultConfig().Picture(t.Context(), sub, time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), ""); err == nil {
		t.Error("a missing day was drawn")
	}
}

func TestSeamsAreMeasuredAtTheBordersOfWindows(t *testing.T) {
	e := enginetest.Open(t)
	v, err := infer.Untrained(impute.Design{
		Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true, Departure: true, Extras: impute.Extras{Last: true, Analysis: true},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model, err := infer.Load(v, infer.Device{Backend: e})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	fill := infer.DefaultConfig()
	fill.Method, fill.Network = infer.MethodModel, infer.Network{Tier: infer.Standard, Members: 1}
	c := DefaultConfig()
	c.Scenes, c.MinCells = 1, 50
	got, err := c.Seams(t.Context(), Subject{Series: series(t, 90, 100, 60), Fill: fill, Model: model}, [2]int{64, 72}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if got.Scenes != 1 || math.Abs(got.Gradient-1) > 0.2 || math.Abs(got.GradientMembers-1) > 0.2 || !(got.Differ > 0) || !(got.Spread > 0) {
		t.Errorf("seams are %+v", got)
	}

	// A step laid along the borders is found.
	b := newBorders(field.Grid{Lat: make([]float64, 90), Lon: make([]float64, 100)}, 64)
	b.filled = slices.Repeat([]byte{infer.Interpolated}, 90*100)
	smooth, stepped := make([]float32, 90*100), make([]float32, 90*100)
	for i := range smooth {
		smooth[i] = float32(i%100) + float32(i/100)
		stepped[i] = smooth[i]
		if b.col[i%100] {
			stepped[i] += 5
		}
	}
	var clean, seam ratio
	clean.add(b, smooth, smooth)
	seam.add(b, smooth, stepped)
	if clean.value() != 1 || !(seam.value() > 1.2) {
		t.Errorf("without a seam %g, with one %g", clean.value(), seam.value())
	}
}
