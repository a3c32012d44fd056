package work

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/skill"
)

// A scored day calibrates the days after it, and neither itself nor those before.
func TestAScoredDayCalibratesTheDaysAfterIt(t *testing.T) {
	w := newTestWorker(t)
	w.cfg.State = state.Dir(t.TempDir())
	_, days := someDays(t, w, 8)
	scored := days[6]
	s := scene{granule: scored, history: days[:6]}
	if _, err := w.scoreOverlay(t.Context(), ledger.Granule{Arrival: ledger.Arrival{SHA256: "key"}, Revision: 1}, s); err != nil {
		t.Fatal(err)
	}
	at := func(i int) int {
		return w.widening(fill.Job{Granule: days[i], Fill: w.set.Fill}).Days
	}
	if at(5) != 0 || at(6) != 0 || at(7) != 1 {
		t.Errorf("calibrated by %d, %d and %d days before, on and after the scored day; want 0, 0 and 1", at(5), at(6), at(7))
	}
	outcome, _, err := w.analyse(t.Context(), fill.Job{Dataset: "sea", Granule: days[7], History: days[:7], Fill: w.set.Fill})
	if err != nil || outcome.Scored != 1 || outcome.Analyses[0].Own == nil {
		t.Errorf("the day after is filled with %d scored days (%v), want one that changed its sigma", outcome.Scored, err)
	}
	// Scoring it once more replaces it.
	if _, err := w.scoreOverlay(t.Context(), ledger.Granule{Arrival: ledger.Arrival{SHA256: "key"}, Revision: 1}, s); err != nil || at(7) != 1 {
		t.Errorf("the same day scored twice counts %d times, %v", at(7), err)
	}
}

func TestAnotherMethodBeginsACalibrationOfItsOwn(t *testing.T) {
	w := newTestWorker(t)
	w.cfg.State = state.Dir(t.TempDir())
	_, days := someDays(t, w, 2)
	job := fill.Job{Granule: days[1], Fill: infer.DefaultConfig()}
	first := skill.ScoredDay{Day: days[0].Fields[0].Time}
	if err := w.keepScored(scored{job: job, day: first}); err != nil {
		t.Fatal(err)
	}
	other := job
	other.Fill.OI.LengthKM = 60
	if a, b := w.widening(job).Days, w.widening(other).Days; a != 1 || b != 0 {
		t.Errorf("%d days for the constants that were scored and %d for others, want 1 and 0", a, b)
	}
	if err := w.keepScored(scored{job: other, day: first}); err != nil {
		t.Fatal(err)
	}
	if a, b := w.widening(job).Days, w.widening(other).Days; a != 1 || b != 1 {
		t.Errorf("%d days for the former constants and %d for the new ones, want 1 each", a, b)
	}
	for km := range keptMethods { // those that were scored long ago are forgotten
		another := job
		another.Fill.OI.LengthKM = float64(100 + km)
		if err := w.keepScored(scored{job: another, day: first}); err != nil {
			t.Fatal(err)
		}
	}
	if a, n := w.widening(job).Days, len(w.evidence().Methods); a != 0 || n != keptMethods {
		t.Errorf("%d days are kept of %d methods, want none of the former and the last %d", a, n, keptMethods)
	}
	if err := os.WriteFile(w.cfg.State.Calibration("sea"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.widening(other).Days; got != 0 {
		t.Errorf("a damaged file makes %d days", got)
	}
	if err := w.keepScored(scored{job: other, day: first}); err != nil || w.widening(other).Days != 1 {
		t.Errorf("a damaged file is not replaced: %v", err)
	}
}

func TestOldScoredDaysAreForgotten(t *testing.T) {
	var kept []skill.ScoredDay
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := 2 * keptDays; d > 0; d-- { // from the last to the first, as a backfill may
		kept = inOrder(kept, skill.ScoredDay{Day: begin.AddDate(0, 0, d)}, func(d skill.ScoredDay) time.Time { return d.Day })
	}
	if n := len(kept); n != keptDays || !kept[0].Day.After(begin.AddDate(0, 0, keptDays)) {
		t.Errorf("%d days from %v on are kept, want the last %d", n, kept[0].Day, keptDays)
	}
}

// The file of an earlier program has one method and no version.
func TestTheCalibrationOfAnEarlierProgramIsRead(t *testing.T) {
	w := newTestWorker(t)
	w.cfg.State = state.Dir(t.TempDir())
	_, days := someDays(t, w, 2)
	job := fill.Job{Granule: days[1], Fill: infer.DefaultConfig()}
	file := w.cfg.State.Calibration("sea")
	before := map[string]any{"method": methodOf(job), "days": []skill.ScoredDay{{Day: days[0].Fields[0].Time}}}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), state.Save(file, before)); err != nil {
		t.Fatal(err)
	}
	if got := w.widening(job).Days; got != 1 {
		t.Errorf("%d days are read, want 1", got)
	}
	if err := w.keepScored(scored{job: job, day: skill.ScoredDay{Day: days[0].Fields[0].Time.AddDate(0, 0, -1)}}); err != nil || w.widening(job).Days != 2 {
		t.Errorf("with one more there are %d, %v", w.widening(job).Days, err)
	}
	if err := os.WriteFile(file, []byte(`{"version":99,"methods":[]}`), 0o600); err != nil || len(w.evidence().Methods) != 0 {
		t.Errorf("the file of a later program is used: %v", err)
	}
}
