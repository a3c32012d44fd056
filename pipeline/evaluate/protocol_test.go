package evaluate

import (
	"context"
	"math"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// gaussianExam returns an exam on a Gaussian sea of 16 × 16 cells.
func gaussianExam(t *testing.T) (*GaussianSea, *Exam) {
	t.Helper()
	sea := NewGaussianSea(16)
	s, err := sea.Series(1500)
	if err != nil {
		t.Fatal(err)
	}
	_, held, err := s.Split(samples.DefaultSplit())
	if err != nil {
		t.Fatal(err)
	}
	overlays, err := held.Overlays(samples.DefaultOverlays(16))
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExam(held, impute.Surroundings{Days: held}, overlays, impute.Single)
	if err != nil {
		t.Fatal(err)
	}
	return sea, e
}

// The conditional variance is known: the error of kriging must agree with its
// sigma, its intervals must cover their nominal share, and no method may be
// better.
func TestErrorOfKrigingAgreesWithItsSigma(t *testing.T) {
	sea, e := gaussianExam(t)
	v, err := e.Judge(t.Context(), sea.Kriging(e.held.Scaling()), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := *v.Summary.Gaussian.SpreadSkill; math.Abs(s-1) > 0.05 {
		t.Errorf("claimed over real error is %.3f, want 1", s)
	}
	if c, _ := v.Summary.Gaussian.Covers(0.9); math.Abs(c-0.9) > 0.02 {
		t.Errorf("90 %% intervals cover %.3f", c)
	}
	worse, err := e.Judge(t.Context(), Climatology(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *v.Summary.MSE > 0.5**worse.Summary.MSE {
		t.Errorf("kriging leaves %.3f, the mean map %.3f", *v.Summary.MSE, *worse.Summary.MSE)
	}
}

// An error that is 1 where a cell has not been seen for long and 0 elsewhere
// has, with the weights of true gaps, the share of such cells among true gaps.
func TestGapMSEIsThatOfTrueGaps(t *testing.T) {
	e := exam(t, impute.Past)
	if reached := e.WeighGaps(); reached < 0.9 {
		t.Fatalf("overlays stand for %.2f of the true gaps", reached)
	}
	const longDays = 2
	missed := Method{Name: "missed", Fill: func(_ context.Context, cases []Case) ([]Answer, error) {
		out := make([]Answer, len(cases))
		for i, c := range cases {
			o := e.Overlay(c.Number)
			out[i].Mean = known(o.Values, 0)
			for k, age := range cellsOf(e.held.Last(o.Ref, samples.LastDays), o.Visible, o.Window).ageDays {
				if age > longDays {
					out[i].Mean[k]++
				}
			}
		}
		return out, nil
	}}
	v, err := e.Judge(t.Context(), missed, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	long, all := 0.0, 0.0
	for i := range e.Cases() {
		o := e.Overlay(i)
		observed := o.Observed()
		for k, age := range cellsOf(e.held.Last(o.Ref, samples.LastDays), observed, o.Window).ageDays {
			if o.Sea[k] && !observed[k] {
				all++
				if age > longDays {
					long++
				}
			}
		}
	}
	if got, want := *v.Summary.WeightedMSE, long/all; math.Abs(got-want) > 0.05 {
		t.Errorf("gap MSE is %.3f, %.3f of true gaps are as old; the plain MSE is %.3f", got, want, *v.Summary.MSE)
	}
}

func TestATruthScoresCellsUnderClouds(t *testing.T) {
	e := exam(t, impute.Past)
	// A truth that is one standard deviation above the mean map.
	scaling, grid := e.held.Scaling(), e.held.Grid()
	var fields []field.Field
	for day := range e.held.Days() {
		f := field.Field{Grid: grid, Time: e.held.Time(day), Values: make([]float32, grid.Len())}
		for i := range f.Values {
			f.Values[i] = scaling.Inverse(1, i)
		}
		fields = append(fields, f)
	}
	truth, err := NewTruth(fields, e.held)
	if err != nil {
		t.Fatal(err)
	}
	gaps, err := e.OnRealGaps(truth)
	if err != nil {
		t.Fatal(err)
	}
	overlays, err := e.AgainstTruth(truth)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Exam{gaps, overlays} {
		v, err := x.Judge(t.Context(), Climatology(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(*v.Summary.MSE-1) > 1e-4 {
			t.Errorf("the mean map is off by %g, want 1", *v.Summary.MSE)
		}
	}
	for i := range gaps.Cases() {
		o := gaps.Overlay(i)
		seen := e.held.Cut(o.Ref).Observed()
		for k := range o.Scored {
			if o.Scored[k] == seen[k] && o.Sea[k] {
				t.Fatalf("cell %d of case %d was observed: %v, and is scored: %v", k, i, seen[k], o.Scored[k])
			}
		}
	}
	fields[0].Grid.Lat = append([]float64{0}, grid.Lat[1:]...)
	if _, err := NewTruth(fields, e.held); err == nil {
		t.Error("a truth of another grid was accepted")
	}
}

// Sigmas that are half of the errors come out right, though no month has
// calibrated itself.
func TestCalibrationMendsAWrongSigma(t *testing.T) {
	_, e := gaussianExam(t)
	answers := make([]Answer, e.Cases())
	v, err := e.Judge(t.Context(), Climatology(), func(i int, a Answer) {
		for k := range a.Sigma {
			a.Sigma[k] = 0.5
		}
		answers[i] = a
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Calibrated(answers)
	if err != nil {
		t.Fatal(err)
	}
	mended, err := e.Judge(t.Context(), Given(m), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *mended.Summary.MSE != *v.Summary.MSE {
		t.Error("calibration changed the mean")
	}
	if c, _ := mended.Summary.Gaussian.Covers(0.9); math.Abs(c-0.9) > 0.03 {
		t.Errorf("90 %% intervals cover %.3f after calibration", c)
	}
}
