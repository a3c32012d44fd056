package seas

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// offBy returns answers that are off by a number everywhere, with a sigma.
func offBy(x *exam, off, sigma float32) []evaluate.Answer {
	out := make([]evaluate.Answer, x.Cases())
	for i := range out {
		o := x.Overlay(i)
		out[i] = evaluate.Answer{Mean: make([]float32, len(o.Values)), Sigma: make([]float32, len(o.Values))}
		for k, v := range o.Values {
			out[i].Mean[k], out[i].Sigma[k] = v+off, sigma
		}
	}
	return out
}

func testExam(t *testing.T, days, count int) *exam {
	t.Helper()
	l := testLab(t, map[string]samples.Series{"a": waves("a", days), "b": waves("b", 60)})
	x, err := l.examOf(l.seas[0], "judge", l.seas[0].judge, testSide, count, impute.Past)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Interpolation is off by 0.2 and claims 0.05, the network by 0.1 and claims 0.1.
func TestTheFiguresOfCraftedMethodsAreRight(t *testing.T) {
	x := testExam(t, 200, 0)
	oi, network := offBy(x, 0.2, 0.05), offBy(x, 0.1, 0.1)
	reference, err := x.verdict(t.Context(), methodOI, 0, oi)
	if err != nil {
		t.Fatal(err)
	}
	v, err := x.verdict(t.Context(), methodNetwork, 1, network)
	if err != nil {
		t.Fatal(err)
	}
	base, err := rowOf(reference, reference, x.boot)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rowOf(v, reference, x.boot)
	if err != nil {
		t.Fatal(err)
	}
	const tolerance = 1e-4 // of numbers in float32
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	near("MSE of interpolation", base.MSE, 0.04)
	near("MSE of the network", r.MSE, 0.01)
	near("difference", r.ByMSE.Relative, -0.75)
	near("lower end", r.ByMSE.Interval.Low, -0.75)
	near("upper end", r.ByMSE.Interval.High, -0.75)
	near("coverage of interpolation", base.Coverage, 0) // four sigmas off
	near("coverage of the network", r.Coverage, 1)      // one sigma off
	near("its lower end", r.CoverageIn.Low, 1)          // on each day
	days := x.departures(oi, network)
	for _, p := range curve(days) {
		left := 0.2 - 0.1*p.Share
		near("curve", p.Relative, left*left/0.04-1)
	}
	// Followed all the way once ten days have shown it, and not before.
	followed, share := x.followed(oi, network, evidence(days), nil)
	near("mean share", share, 1-float64(skill.TrustDays)/float64(len(days)))
	for i, a := range followed {
		o := x.Overlay(i)
		cell := slices.Index(o.Scored, true)
		want := 0.2
		if before := slices.IndexFunc(days, func(d departure) bool { return !d.Day.Before(o.Time.Truncate(24 * time.Hour)) }); before >= skill.TrustDays {
			want = 0.1
		}
		near("error of what is followed", float64(a.Mean[cell]-o.Values[cell]), want)
	}
	left := record{Left: "a", Sea: "a", Mode: impute.Past, Curve: curve(days), Rows: []row{
		base, r, {Method: methodServed, ByMSE: r.ByMSE, Coverage: 0.9}, {Method: methodTrusted, ByMSE: &difference{Relative: 0.02}, Coverage: 0.9},
	}}
	known := left // a sea that the network knows does not count
	known.Left, known.Rows = leaveNone, []row{{Method: methodServed, ByMSE: &difference{Relative: 0.5}}}
	text := markdown([]record{left, known})
	for _, part := range []string{"-75.0 % [-75.0, -75.0]", "served: mean over 1 seas -75.0 %", "the bar is met", "| 1.000 [1.000, 1.000] |", "trusted: mean over 1 seas +2.0 %, worst +2.0 % (a), coverage 0.900 to 0.900: the bar is not met"} {
		if !strings.Contains(text, part) {
			t.Errorf("the table lacks %q:\n%s", part, text)
		}
	}
}

func TestANetworkThatIsWorseIsNotFollowed(t *testing.T) {
	x := testExam(t, 200, 0)
	oi, network := offBy(x, 0.1, 0.1), offBy(x, 0.3, 0.1)
	if _, share := x.followed(oi, network, evidence(x.departures(oi, network)), nil); share != 0 {
		t.Errorf("a network that is worse is followed by %g", share)
	}
}

// Errors have the size 0.1; the network claims 0.05 and interpolation 0.04.
func TestSigmasFollowTheDaysBefore(t *testing.T) {
	x := testExam(t, 360, 0)
	answers, oi := offBy(x, 0, 0.05), offBy(x, 0, 0.04)
	for i, a := range answers {
		eps := make([]float32, len(a.Mean))
		noise.New(1, "errors").Normals(eps, uint64(i))
		for k, e := range eps {
			a.Mean[k] += 0.1 * e
		}
	}
	days := x.departures(oi, answers)
	covered := func(from, to int) float64 {
		inside, n := 0.0, 0.0
		for i, a := range x.widened(answers, oi, nil) {
			o := x.Overlay(i)
			if at := dayOf(o); at.Before(days[from].Day) || !at.Before(days[to].Day) {
				continue
			}
			for k, scored := range o.Scored {
				if scored {
					n++
					if math.Abs(float64(a.Mean[k]-o.Values[k])) <= 1.645*float64(a.Sigma[k]) {
						inside++
					}
				}
			}
		}
		return inside / n
	}
	for i, a := range x.widened(answers, oi, nil) {
		if dayOf(x.Overlay(i)).Equal(days[0].Day) && math.Abs(float64(a.Sigma[0])-0.04) > 1e-6 {
			t.Errorf("a sigma of the first day is %g, want that of interpolation, 0.04", a.Sigma[0])
		}
	}
	if got := covered(30, len(days)-1); math.Abs(got-0.9) > 0.03 {
		t.Errorf("later days cover %.3f, want 0.9", got)
	}
	// A day says nothing about its own sigmas, nor about those of days before it.
	last := 0
	for i := range answers {
		if x.Overlay(i).Time.After(x.Overlay(last).Time) {
			last = i
		}
	}
	before := x.widened(answers, oi, nil)
	for k := range answers[last].Mean {
		answers[last].Mean[k] += 100
	}
	for i, a := range x.widened(answers, oi, nil) {
		if !slices.Equal(a.Sigma, before[i].Sigma) {
			t.Fatalf("sigmas of case %d change with the errors of the last day", i)
		}
	}
}

// A day's share must not depend on that day or on a later one.
func TestTrustDoesNotSeeItsOwnDay(t *testing.T) {
	x := testExam(t, 200, 0)
	oi, network := offBy(x, 0.2, 0.05), offBy(x, 0.1, 0.1)
	days := x.departures(oi, network)
	want, _ := x.followed(oi, network, evidence(days), nil)
	const from = 15
	for i := from; i < len(days); i++ {
		days[i].DE = -1e6
	}
	got, _ := x.followed(oi, network, evidence(days), nil)
	changed := false
	for i := range got {
		same := slices.Equal(got[i].Sigma, want[i].Sigma)
		if day := dayOf(x.Overlay(i)); !same && !day.After(days[from].Day) {
			t.Errorf("the share of %s changes with that day or a later one", day.Format(time.DateOnly))
		}
		changed = changed || !same
	}
	if !changed {
		t.Error("no share changes with the days before it")
	}
}

func TestSeveralNetworksAnswerWithTheVarianceOfTheirMixture(t *testing.T) {
	one := []evaluate.Answer{{Mean: []float32{1}, Sigma: []float32{2}}}
	two := []evaluate.Answer{{Mean: []float32{3}, Sigma: []float32{4}}}
	got := averaged([][]evaluate.Answer{one, two})[0]
	// Mean of variances 10, variance of means 1.
	if got.Mean[0] != 2 || math.Abs(float64(got.Sigma[0])-math.Sqrt(11)) > 1e-6 {
		t.Errorf("mean is %v and sigma %v, want 2 and √11", got.Mean[0], got.Sigma[0])
	}
}

func TestEstimatesOutlastAProcessThatIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept")
	k, err := openKept(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openKept(path); err == nil {
		t.Error("a second process may write to the same file")
	}
	k.put(key{1}, estimate{[]float32{1, 2}, []float32{3, 4}})
	k.put(key{2}, estimate{[]float32{5}, []float32{6}})
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
	size, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size.Size()-3); err != nil { // in the middle of the second
		t.Fatal(err)
	}
	for range 2 { // the second time reads what the first has added behind the cut
		if k, err = openKept(path); err != nil {
			t.Fatal(err)
		}
		e, ok := k.get(key{1})
		if !ok || !slices.Equal(e.value, []float32{1, 2}) || !slices.Equal(e.sigma, []float32{3, 4}) {
			t.Errorf("the whole estimate is %v, %v", e, ok)
		}
		if _, ok := k.get(key{2}); ok {
			t.Error("half an estimate was read")
		}
		k.put(key{3}, estimate{[]float32{7}, []float32{8}})
		if err := k.close(); err != nil {
			t.Fatal(err)
		}
	}
	if k, err = openKept(path); err != nil {
		t.Fatal(err)
	}
	if e, ok := k.get(key{3}); !ok || e.value[0] != 7 {
		t.Errorf("an estimate behind the cut is %v, %v", e, ok)
	}
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
}

// counting counts the analyses that are made.
type counting struct {
	samples.Train
	made *int
}

func (c counting) Analyse(r samples.Ref, visible []bool, cfg samples.BackgroundConfig) (value, sigma []float32, err error) {
	*c.made++
	return c.Train.Analyse(r, visible, cfg)
}

func TestAnAnalysisIsMadeOnceForAllThatDependsOnNothingElse(t *testing.T) {
	l := testLab(t, map[string]samples.Series{"a": waves("a", 60), "b": waves("b", 60)})
	made := 0
	p, q := l.seas[0].place, l.seas[1].place
	same := func(oi classical.OI) classical.OI { return oi }
	names := map[*samples.Place]placed{p: {"a", same}, q: {"b", same}}
	a, err := newKeptOI(counting{l.train, &made}, l.kept, impute.QuickOI, names)
	if err != nil {
		t.Fatal(err)
	}
	ref, other := l.seas[0].refs[0], l.seas[1].refs[0]
	observed := l.train.Cut(ref).Observed()
	fewer := slices.Clone(observed)
	fewer[slices.Index(fewer, true)] = false
	ask := func(a keptOI, r samples.Ref, visible []bool, mode impute.Mode, want int) []float32 {
		t.Helper()
		value, _, err := a.Analyse(r, visible, mode)
		if err != nil {
			t.Fatal(err)
		}
		if made != want {
			t.Errorf("%d analyses were made, want %d", made, want)
		}
		return value
	}
	first := ask(a, ref, observed, impute.Past, 1)
	if !slices.Equal(first, ask(a, ref, observed, impute.Past, 1)) {
		t.Error("an analysis that was kept is another")
	}
	ask(a, ref, observed, impute.Delayed, 2) // other mode
	ask(a, ref, fewer, impute.Past, 3)       // other cells
	ask(a, other, observed, impute.Past, 4)  // other sea
	b, err := newKeptOI(counting{l.train, &made}, l.kept, func(o classical.OI) classical.OI { return impute.ServingOI(o) }, names)
	if err != nil {
		t.Fatal(err)
	}
	ask(b, ref, observed, impute.Past, 5) // other settings
	names[p] = placed{"a", func(oi classical.OI) classical.OI { return parts.Constants{LengthKM: 10, Days: 1, Nugget: 0.5}.Of(oi) }}
	c, err := newKeptOI(counting{l.train, &made}, l.kept, impute.QuickOI, names)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(first, ask(c, ref, observed, impute.Past, 6)) { // other constants
		t.Error("other constants give the same analysis")
	}
}

// The constants of a sea come from its learn and choose days: a judge day has no
// part in them.
func TestConstantsOfASeaDoNotSeeItsJudgeDays(t *testing.T) {
	find := func(change func(s *sea, d samples.Day) bool) *parts.Constants {
		series := waves("a", 120)
		l := testLab(t, map[string]samples.Series{"a": series, "b": waves("b", 60)})
		if change != nil {
			for i, d := range series.Days {
				if change(l.seas[0], d) {
					series.Days[i].Values = slices.Clone(d.Values)
					for cell := range d.Values {
						series.Days[i].Values[cell] += float32(cell%5) - 2
					}
				}
			}
			l = testLab(t, map[string]samples.Series{"a": series, "b": waves("b", 60)})
		}
		place := slices.Index(l.train.Places(), l.seas[0].place)
		oi, _, err := version.TuneInterpolation(t.Context(), l.train, place, l.seas[0].refs, impute.Past, 20, noise.New(1, "test"))
		if err != nil {
			t.Fatal(err)
		}
		return &parts.Constants{LengthKM: oi.LengthKM, Days: oi.Days, Nugget: oi.Nugget}
	}
	role := func(r samples.Role) func(*sea, samples.Day) bool {
		return func(s *sea, d samples.Day) bool { return s.calendar.Role(samples.DateOf(d.Time)) == r }
	}
	plain := find(nil)
	if got := find(role(samples.Judge)); *got != *plain {
		t.Errorf("other values on judge days make the constants %+v of %+v", *got, *plain)
	}
	if got := find(role(samples.Learn)); *got == *plain {
		t.Error("other values on learn days change nothing")
	}
}

// What other seas say of a network that never saw one leaves that one out, counts a
// sea once however many modes it has, and networks that knew the sea not at all.
func TestWhatOtherSeasSayLeavesOutTheSeaThatIsJudged(t *testing.T) {
	var all []record
	for sea, best := range map[string]float64{"a": 0.5, "b": 0.7, "c": 0.9, "d": -7} {
		for _, mode := range []impute.Mode{impute.Past, impute.Delayed} {
			all = append(all, record{Left: sea, Sea: sea, Mode: mode, Best: best})
		}
	}
	all = append(all, record{Left: leaveNone, Sea: "a", Best: 99})
	got, ok := elsewhere(all, "d")
	if !ok || got.Seas != 3 || math.Abs(got.Share-0.7) > 1e-9 {
		t.Errorf("%+v, %v: the mean of three seas is 0.7", got, ok)
	}
	if _, ok := elsewhere(all[:4], ""); ok {
		t.Error("two seas say something of a third")
	}
}
