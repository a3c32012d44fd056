package ledger

import (
	"testing"
	"time"
)

func TestSpanIsFromTheFirstFieldToTheLast(t *testing.T) {
	l := outbox(t)
	if first, last, err := l.Span(t.Context(), "sea"); err != nil || !first.IsZero() || !last.IsZero() {
		t.Errorf("Span() of nothing = %v, %v, %v", first, last, err)
	}
	g := arriveNow(t, l, Arrival{Object: Object{Dataset: "sea", Name: "a.nc", Size: 1}, SHA256: "aa", SpoolPath: "spool/a.nc"})
	days := []time.Time{
		time.Date(2024, 5, 3, 0, 0, 0, 0, time.UTC), time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 5, 2, 0, 0, 0, 0, time.UTC),
	}
	if err := l.SetTimes(t.Context(), g.ID, days); err != nil {
		t.Fatal(err)
	}
	if first, last, err := l.Span(t.Context(), g.Dataset); err != nil || !first.Equal(days[1]) || !last.Equal(days[0]) {
		t.Errorf("Span() = %v, %v, %v", first, last, err)
	}
	if times, err := l.Times(t.Context(), g.ID); err != nil || len(times) != 3 || !times[0].Equal(days[1]) || !times[2].Equal(days[0]) {
		t.Errorf("Times() = %v, %v, want the three days in order", times, err)
	}
}
