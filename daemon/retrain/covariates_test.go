package retrain

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A training is told the covariates of the days that it learns from, as they are when it
// is due: one that is resumed is told the same, whatever has come since.
func TestATrainingIsToldTheCovariatesOfItsDays(t *testing.T) {
	s := newTestScheduler(t)
	files := "--covariate-file sst=a.nc"
	var asked [2]time.Time
	s.Dataset.Covariates = func(_ context.Context, from, to time.Time) ([]string, error) {
		asked = [2]time.Time{from, to}
		return append([]string{"--covariate", "sst={day}.nc:sst"}, strings.Fields(files)...), nil
	}
	for day := 1; day <= 3; day++ {
		s.arrive(t, day)
	}
	s.do(t, "late")
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := [2]time.Time{time.Date(2026, 1, 2-season, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}; asked != want {
		t.Errorf("asked for covariates from %v to %v, want %v", asked[0], asked[1], want)
	}
	files += " --covariate-file sst=b.nc"
	s.do(t, "done")
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := s.calls()
	if len(calls) != 2 || calls[0] != calls[1] || !strings.HasSuffix(calls[0], "--covariate sst={day}.nc:sst --covariate-file sst=a.nc") {
		t.Errorf("calls %q", calls)
	}
}
