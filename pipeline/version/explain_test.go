package version

import (
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/samples"
)

// What a challenger has to better is what serves: optimal interpolation with the
// covariates that pay for it, chosen without any day that judges.
func TestTheGateJudgesInterpolationWithItsCovariates(t *testing.T) {
	s := besideSea(t)
	settings := quickSettings()
	settings.Judging.Overlays = 20
	r, err := begin(Request{Series: []samples.Series{s}, Settings: settings, Backend: enginetest.Open(t)}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	plain, err := r.interpolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exam, err := evaluate.NewExam(r.judgeSide, r.aroundJudge, r.judging, r.s.Judging.Mode)
	if err != nil {
		t.Fatal(err)
	}
	n, served, err := r.explain(t.Context(), plain, exam)
	if err != nil {
		t.Fatal(err)
	}
	mse := func(n Interpolation, exam *evaluate.Exam) float64 {
		v, err := exam.Judge(t.Context(), n.Method(exam), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return *v.Summary.MSE
	}
	without, with := mse(plain, exam), mse(n, served)
	t.Logf("MSE %.4f without, %.4f with; %v", without, with, n)
	if n.Covariates.Names() != "sst" || !n.Covariates.OnJudge || !(with < 0.9*without) {
		t.Errorf("it knows %q, its MSE is %.4f without and %.4f with", n.Covariates.Names(), without, with)
	}
	if said := n.String(); !strings.Contains(said, "it knows sst, which save +") {
		t.Errorf("it says %s", said)
	}
	// The networks depart from the analysis that they learned with.
	if again, err := r.interpolation(t.Context()); err != nil || again.Covariates != nil {
		t.Errorf("the analysis of the networks knows %v, %v", again.Covariates, err)
	}

	oi := plain.Constants[0].Of(classical.DefaultOI(s.Grid))
	_, other, err := Explain(t.Context(), revalued(s, r.judging), TermsOf(s), r.split.calendars[0], oi, r.s.Judging.Mode)
	if a, b := asJSON(t, n.Covariates.Terms), asJSON(t, other.Terms); err != nil || a != b {
		t.Errorf("other values on the days that judge change the regression from\n%s to\n%s, %v", a, b, err)
	}
}

// No day that judges learns or chooses.
func TestDaysThatJudgeHaveNoPartInTheChoiceOfCovariates(t *testing.T) {
	var all []samples.Day
	for d := range 200 {
		all = append(all, samples.Day{Time: time.Date(2024, 1, 1+d, 12, 0, 0, 0, time.UTC)})
	}
	calendar := samples.Extend(samples.Calendar{}, all, samples.DefaultSplit())
	days := covariateDays(all, calendar)
	if len(days.Learn) == 0 || len(days.Choose) == 0 || len(days.Judge) == 0 {
		t.Fatalf("%d learn, %d choose, %d judge", len(days.Learn), len(days.Choose), len(days.Judge))
	}
	used := map[int]bool{}
	for _, i := range append(append([]int(nil), days.Learn...), days.Choose...) {
		if used[i] || calendar.Role(samples.DateOf(all[i].Time)) == samples.Judge {
			t.Errorf("day %d judges, or is used twice", i)
		}
		used[i] = true
	}
}
