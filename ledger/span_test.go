package ledger

import (
	"errors"
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

// A revision of the same bytes was fetched when they were, one of others later.
func TestBytesWereFetchedWithTheFirstRevisionThatHasThem(t *testing.T) {
	l := outbox(t)
	at := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	arrive := func(sum string, now time.Time) Granule {
		t.Helper()
		g, fresh, err := l.Arrive(t.Context(), Arrival{Object: Object{Dataset: "sea", Name: "a.nc", Size: 1}, SHA256: sum, SpoolPath: "spool/" + sum}, now)
		if err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		return g
	}
	finish := func(g Granule) {
		t.Helper()
		product := Product{Path: "p.nc", SHA256: "pp"}
		if err := errors.Join(l.Advance(t.Context(), g.ID, Filled, at), l.Store(t.Context(), g.ID, product, at)); err != nil {
			t.Fatal(err)
		}
	}
	first := arrive("aa", at)
	finish(first)
	again, err := l.Revise(t.Context(), Revision{Dataset: "sea", Granule: "a.nc", Cause: Redo, Why: "test"}, at.AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	finish(again)
	other := arrive("bb", at.AddDate(0, 0, 2))
	for name, tt := range map[string]struct {
		g    Granule
		want time.Time
	}{
		"the first": {first, at}, "the same bytes again": {again, at}, "other bytes": {other, at.AddDate(0, 0, 2)}, "no bytes": {Granule{}, time.Time{}},
	} {
		if got, err := l.FetchedAt(t.Context(), tt.g); err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: fetched at %v, %v, want %v", name, got, err, tt.want)
		}
	}
}
