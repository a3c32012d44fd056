package daemon

import (
	"math"
	"slices"
	"testing"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/skill"
)

func TestEveryGranuleIsScoredUnderTheGapsOfAnotherDay(t *testing.T) {
	skipInShort(t)
	r := newRolling(t, 6)
	r.cfg.Datasets[0].DailySkill = true
	r.deliver(t, 0, 1, 2, 3, 4)
	r.pass(t, 0)
	r.deliver(t, 5) // reopens the products whose window it does not end
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
	open := func(r ledger.Reopening) bool { return r.Outcome == "" }
	if rs, _ := r.book(t).Reopenings(t.Context(), ledger.ReopeningQuery{Dataset: "sea"}); !slices.ContainsFunc(rs, open) {
		t.Errorf("reopened %+v: scores come after products, not instead", rs)
	}
}

func TestReplacementScoresTheEarlierFillWhereItReveals(t *testing.T) {
	skipInShort(t)
	b := newBench(t)
	r := &rolling{bench: b, world: world(t, 24, 32), now: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	set := &b.cfg.Datasets[0]
	set.Fill.Method, set.DailySkill = "climatology", true
	var first, second simulate.Delivery
	for _, d := range r.world.Schedule() { // find the replacement that reveals most
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
	for _, d := range firstVersions(r.world, 30) { // the neighbours of the fill
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

// revealed counts the sea cells that only the second delivery shows; 0 where one
// of the two shows too few.
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
		return 0 // too few cells for a score
	}
	return n
}
