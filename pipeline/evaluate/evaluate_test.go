package evaluate

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// exam returns overlays on a sea of slow waves with cloud-like gaps.
func exam(t *testing.T, mode impute.Mode) *Exam {
	t.Helper()
	const side, days = 48, 160
	r := rand.New(rand.NewPCG(3, 4))
	grid := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 40+0.04*float64(i), 10+0.04*float64(i)
	}
	sea := make(field.Mask, side*side)
	for i := range sea {
		sea[i] = true
	}
	var fields []field.Field
	for d := range days {
		values := make([]float32, side*side)
		row, col, radius := r.IntN(side), r.IntN(side), 8+r.IntN(14)
		for i := range values {
			y, x := i/side, i%side
			values[i] = float32(math.Sin(float64(x)/7+float64(d)/9)+math.Cos(float64(y)/9-float64(d)/11)) + 0.05*float32(r.NormFloat64())
			if (y-row)*(y-row)+(x-col)*(x-col) < radius*radius {
				values[i] = field.NaN()
			}
		}
		fields = append(fields, field.Field{Grid: grid, Time: time.Date(2020, 1, 1+d, 0, 0, 0, 0, time.UTC), Values: values})
	}
	s, err := samples.New(fields, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	_, held, err := s.Split(samples.DefaultSplit())
	if err != nil {
		t.Fatal(err)
	}
	cfg := samples.DefaultOverlays(48)
	cfg.Count = 24
	overlays, err := held.Overlays(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExam(held, impute.Surroundings{Days: held}, overlays, mode)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestACaseHoldsNothingThatIsScored(t *testing.T) {
	e := exam(t, impute.Past)
	for i := range e.Cases() {
		c, err := e.Case(i)
		if err != nil {
			t.Fatal(err)
		}
		o := e.Overlay(i)
		for k, scored := range o.Scored {
			own := c.Series.Frames[c.Target].Values[k]
			if scored && (c.Inputs.Values[k] == c.Inputs.Values[k] || own == own) {
				t.Fatalf("case %d shows cell %d, on which it is scored", i, k)
			}
		}
		for _, f := range c.Series.Frames {
			if f.Time.After(o.Time) {
				t.Fatalf("case %d of a past-only exam shows %v, after %v", i, f.Time, o.Time)
			}
		}
		if c.Inputs.Next.Value != nil {
			t.Fatal("a past-only exam shows the next observation")
		}
	}
}

func TestScoresAgreeWithACalculationByHand(t *testing.T) {
	e := exam(t, impute.Past)
	sum, n := 0.0, 0.0
	for i := range e.Cases() {
		o := e.Overlay(i)
		for k, v := range o.Values {
			if o.Scored[k] {
				sum, n = sum+float64(v)*float64(v), n+1
			}
		}
	}
	v, err := e.Judge(t.Context(), Climatology(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := sum / n; math.Abs(*v.Summary.MSE-want) > 1e-5*want {
		t.Errorf("the mean map has an MSE of %g, by hand %g", *v.Summary.MSE, want)
	}
	known := Method{Name: "truth", Fill: func(_ context.Context, cases []Case) ([]Answer, error) {
		out := make([]Answer, len(cases))
		for i, c := range cases {
			out[i].Mean = known(e.Overlay(c.Number).Values, 0)
		}
		return out, nil
	}}
	if v, err = e.Judge(t.Context(), known, nil, nil); err != nil {
		t.Fatal(err)
	}
	if *v.Summary.MSE > 1e-10 || math.Abs(*v.Summary.CBGD-1) > 1e-6 {
		t.Errorf("the truth has MSE %g and CBGD %g", *v.Summary.MSE, *v.Summary.CBGD)
	}
}

func TestATableOrdersMethodsByTheirInformation(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	e := exam(t, impute.Delayed)
	oi := classical.DefaultOI(e.held.Grid())
	var verdicts []Verdict
	for _, m := range []Method{OI(oi), Persistence(), Climatology()} {
		v, err := e.Judge(t.Context(), m, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, v)
	}
	r, err := NewResults("classical", e, "oi", verdicts)
	if err != nil {
		t.Fatal(err)
	}
	r.Dataset = "waves"
	if !(r.Rows[0].MSE.Mean < r.Rows[1].MSE.Mean && r.Rows[1].MSE.Mean < r.Rows[2].MSE.Mean) {
		t.Errorf("OI, persistence and climatology have MSE %g, %g and %g; want them to rise", r.Rows[0].MSE.Mean, r.Rows[1].MSE.Mean, r.Rows[2].MSE.Mean)
	}
	if d := r.Rows[2].Difference; d == nil || d.Interval.Low <= 0 {
		t.Errorf("the table does not show climatology as worse than OI: %+v", d)
	}
	if text := r.Markdown(); strings.Count(text, "\n| ") != 2*4 || !strings.Contains(text, "waves") {
		t.Errorf("the table reads\n%s", text)
	}
}
