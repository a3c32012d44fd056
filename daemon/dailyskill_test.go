package daemon

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/skill"
)

func TestEveryGranuleIsScoredUnderTheGapsOfAnotherDay(t *testing.T) {
	skipInShort(t)
	r := newRolling(t, 6)
	r.cfg.Datasets[0].DailySkill = true
	r.deliver(t, 0, 1, 2, 3, 4, 5)
	r.pass(t, 0)
	got, err := r.book(t).Skills(t.Context(), ledger.SkillQuery{Dataset: "sea"})
	if err != nil || len(got) < 4 || got[0].Day.Equal(r.world.Granule(r.days[0]).Seen.Time) {
		t.Fatalf("scores %+v, %v, want one of every day but the first, which has none before it", got, err)
	}
	for _, s := range got {
		if s.Kind != ledger.Overlay || s.Method != "climatology" || s.MSE <= 0 || s.MSE > 5 || math.Abs(s.Bias) > 2 ||
			s.Covered90 < 0.3 || s.Covered90 > 1 || s.Pixels < 20 {
			t.Errorf("score %+v", s)
		}
	}
	before := len(got)
	r.pass(t, time.Hour)
	if again, _ := r.book(t).Skills(t.Context(), ledger.SkillQuery{Dataset: "sea"}); len(again) != before {
		t.Errorf("a second pass made it %d scores of %d granules", len(again), before)
	}
	if rs, _ := r.book(t).Reopenings(t.Context(), ledger.ReopeningQuery{Dataset: "sea"}); len(rs) == 0 || rs[0].Outcome != "" {
		t.Errorf("reopened %+v: scores come after products, not instead", rs)
	}
}

// What lies under the overlay must not reach the method: if it is raised by a
// known amount, the error falls by just that.
func TestOverlayHidesTheTruthFromTheMethod(t *testing.T) {
	skipInShort(t)
	for _, method := range []string{"persistence", "climatology", "oi"} {
		r := newRolling(t, 5)
		r.world = world(t, 40, 60)
		r.days = firstVersions(r.world, 9)
		d := r.daemon(t)
		var days []ingest.Granule
		for i := range r.days {
			r.deliver(t, i)
			g, err := d.reader.Read(t.Context(), filepath.Join(r.archive(), r.days[i].Name), ingest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			days = append(days, g)
		}
		w := &worker{set: d.cfg.Datasets[0], cfg: d.cfg, log: d.log, now: d.parts.Now}
		w.set.Fill.Method = method
		w.set.Fill.OI.LengthKM, w.set.Fill.OI.Days, w.set.Fill.OI.Nugget = 50, 5, 0.1 // tuned scales would follow the truth
		slices.SortFunc(days, func(a, b ingest.Granule) int {
			return a.Fields[0].ObservedMask().Count() - b.Fields[0].ObservedMask().Count()
		})
		target := days[len(days)-1] // the clearest day; which days are around it does not matter here
		for i := range days[:len(days)-1] {
			days[i].Fields[0].Time = target.Fields[0].Time.AddDate(0, 0, -1-i)
		}
		days = days[:len(days)-1]
		s := scene{granule: target, history: days, sea: r.world.Sea()}
		g := ledger.Granule{Arrival: ledger.Arrival{SHA256: "key"}, Revision: 1}
		plain, err := w.scoreOverlay(t.Context(), g, s)
		if err != nil {
			t.Fatal(err)
		}
		_, hidden, _ := overlay(target.Fields[0], days, "key")
		const factor = 1.5
		raised := s
		raised.granule.Fields = slices.Clone(s.granule.Fields)
		raised.granule.Fields[0].Values = slices.Clone(s.granule.Fields[0].Values)
		for c, h := range hidden {
			if h {
				raised.granule.Fields[0].Values[c] *= factor
			}
		}
		moved, err := w.scoreOverlay(t.Context(), g, raised)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := scaleOf(s)
		b, _ := scaleOf(raised)
		fall := plain.Bias*a.Std - moved.Bias*b.Std
		if want := math.Log10(factor); math.Abs(fall-want) > 1e-3 || moved.Pixels != plain.Pixels {
			t.Errorf("%s: the truth was raised by %.4f, the bias fell by %.4f", method, want, fall)
		}
	}
}

func TestReplacementScoresTheEarlierFillWhereItReveals(t *testing.T) {
	skipInShort(t)
	b := newBench(t)
	r := &rolling{bench: b, world: world(t, 40, 60), now: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	set := &b.cfg.Datasets[0]
	set.Fill.Method, set.DailySkill = "climatology", true
	var first, second simulate.Delivery
	for _, d := range r.world.Schedule() { // the replacement that shows most beyond the first delivery
		if d.Revision != 2 {
			continue
		}
		for _, f := range r.world.Schedule() {
			if f.Day == d.Day && f.Revision == 1 && (second.Name == "" || revealed(r.world, f, d) > revealed(r.world, first, second)) {
				first, second = f, d
			}
		}
	}
	want := revealed(r.world, first, second)
	if want < 20 {
		t.Skipf("no replacement of the simulated ocean reveals enough: %d cells", want)
	}
	for _, d := range firstVersions(r.world, 30) { // something to fill from
		if d.Day < first.Day && d.Day >= first.Day-5 {
			put(t, b.archive(), r.world.Granule(d))
		}
	}
	put(t, b.archive(), r.world.Granule(first))
	r.pass(t, 0)
	put(t, b.archive(), r.world.Granule(second))
	r.pass(t, time.Hour)
	got, err := r.book(t).Skills(t.Context(), ledger.SkillQuery{Dataset: "sea", Kind: ledger.Revealed})
	if err != nil || len(got) != 1 || got[0].Pixels != want || got[0].Revision != 2 || got[0].MSE <= 0 || got[0].Method != "climatology" {
		t.Errorf("scores %+v, %v, want one of %d cells", got, err, want)
	}
}

// revealed counts the sea cells that only the second delivery shows, where both
// show enough.
func revealed(w *simulate.World, first, second simulate.Delivery) int {
	a, b, both, n := w.Granule(first).Seen, w.Granule(second).Seen, 0, 0
	for c, sea := range w.Sea() {
		switch {
		case sea && !a.Observed(c) && b.Observed(c):
			n++
		case sea && b.Observed(c):
			both++
		}
	}
	if both < skill.LeastPixels {
		return 0 // no day to judge by
	}
	return n
}

// skills is a series of scores with log-normal, persistent weather.
func skills(seed uint64, days int, level func(day int) float64) []ledger.Skill {
	const scatter, persistence = 0.4, 0.5 // as the daily errors of real chlorophyll have it, roughly
	random := rand.New(rand.NewPCG(seed, 1))
	all := make([]ledger.Skill, days)
	weather := random.NormFloat64()
	for i := range all {
		all[i] = ledger.Skill{Day: time.Unix(int64(i)*86400, 0), MSE: level(i) * math.Exp(scatter*weather), Pixels: 1000}
		weather = persistence*weather + math.Sqrt(1-persistence*persistence)*random.NormFloat64()
	}
	return all
}

func TestDriftIsSeenAndWeatherIsNot(t *testing.T) {
	const worlds = 2000
	steady := func(int) float64 { return 0.15 }
	times := func(factor float64) func(day int) float64 {
		return func(day int) float64 {
			if day >= 60 {
				return 0.15 * factor
			}
			return 0.15
		}
	}
	alarms := func(level func(int) float64) (n int) {
		for seed := range uint64(worlds) {
			if SkillDrift(skills(seed, 74, level)).Alarm != "" {
				n++
			}
		}
		return n
	}
	n := [4]int{alarms(steady), alarms(times(2)), alarms(times(3)), alarms(times(0.5))}
	t.Logf("alarms in %d series: steady %d, doubled %d, tripled %d, halved %d", worlds, n[0], n[1], n[2], n[3])
	switch {
	case n[0] > worlds/100:
		t.Errorf("%d alarms in %d steady series, want at most one in a hundred", n[0], worlds)
	case n[1] < worlds/2 || n[2] < worlds*95/100:
		t.Errorf("a doubled error was seen in %d and a tripled one in %d of %d series, want half and nearly all within two weeks", n[1], n[2], worlds)
	case n[3] > 0:
		t.Errorf("%d alarms where the error fell", n[3])
	}
}

func TestDriftNeedsDaysAndSaysWhatItSaw(t *testing.T) {
	level := func(day int) float64 {
		if day >= 60 {
			return 0.5
		}
		return 0.1
	}
	if news := SkillDrift(skills(1, 20, level)); news.Alarm != "" || news.RecentDays != 14 || news.BeforeDays != 6 {
		t.Errorf("of twenty days: %+v, want no alarm", news)
	}
	if news := SkillDrift(nil); news != (SkillNews{}) {
		t.Errorf("of nothing: %+v", news)
	}
	news := SkillDrift(skills(1, 74, level))
	if !strings.Contains(news.Alarm, "the last 14 scored days") || news.Recent < 3*news.Before {
		t.Errorf("news %+v", news)
	}
	flat := make([]ledger.Skill, 74)
	for i := range flat {
		flat[i] = ledger.Skill{MSE: 0.2, Pixels: 9}
	}
	if news := SkillDrift(flat); news.Alarm != "" || math.IsNaN(news.Sigmas) {
		t.Errorf("of a series without scatter: %+v", news)
	}
}
