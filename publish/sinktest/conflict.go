package sinktest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"testing"
	"time"

	"lacuna/publish"
)

// Other returns p with another file under the same revision, as a state makes
// it that was restored from an older copy while the granule has changed.
func Other(t *testing.T, p publish.Product) publish.Product {
	t.Helper()
	other := Product(t, p.Dataset, "other", p.Revision)
	content, err := os.ReadFile(other.Path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	p.Path, p.Size, p.SHA256 = other.Path, int64(len(content)), hex.EncodeToString(sum[:])
	return p
}

func otherBytes(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 1)
	publishAll(t, s.Sink, a)
	wantConflict(t, s.Sink.Publish(t.Context(), Other(t, a)), a, Other(t, a))
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)})
}

func otherBytesAfterRestart(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 2)
	publishAll(t, s.Sink, a)
	wantConflict(t, s.Restart(t).Publish(t.Context(), Other(t, a)), a, Other(t, a))
	publishAll(t, s.Restart(t), a) // the holder of the number may publish again
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)})
}

func otherBytesSuperseded(t *testing.T, s Subject) {
	first, second := Product(t, "sea", "a", 1), Product(t, "sea", "a", 2)
	publishAll(t, s.Sink, first, second)
	if err := s.Restart(t).Publish(t.Context(), Other(t, first)); err != nil && !errors.Is(err, publish.ErrConflict) {
		t.Errorf("Publish() = %v of other bytes under a superseded revision, want nil or ErrConflict", err)
	}
	want(t, s, "sea", map[string]Seen{first.Granule: seen(second)})
}

func otherBytesAgain(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 1)
	publishAll(t, s.Sink, a)
	replayer, ok := s.Restart(t).(publish.Replayer)
	if !ok {
		t.Skip("the sink has no way of its own to send a product again")
	}
	wantConflict(t, replayer.Replay(t.Context(), Other(t, a)), a, Other(t, a))
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)})
}

func otherBytesRetracted(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 1)
	publishAll(t, s.Sink, a)
	other := Other(t, a)
	other.Retracted, other.Why = true, "never published"
	wantConflict(t, s.Sink.Retract(t.Context(), other), a, other)
	other.Displaced = true
	if err := s.Sink.Retract(t.Context(), other); err != nil {
		t.Errorf("Retract() = %v of a displaced revision that was never here", err)
	}
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)})
}

// displaced is a revision that was shown here before it turned out that another
// sink has its number with other bytes.
func displaced(t *testing.T, s Subject) {
	first, wrong, next := Product(t, "sea", "a", 1), Product(t, "sea", "a", 2), Product(t, "sea", "a", 3)
	publishAll(t, s.Sink, first, wrong)
	gone := wrong
	gone.Retracted, gone.Displaced, gone.Why = true, true, "another sink has revision 2 with other bytes"
	for range 2 {
		if err := s.Sink.Retract(t.Context(), gone); err != nil {
			t.Fatalf("Retract() = %v of a displaced revision", err)
		}
	}
	want(t, s, "sea", map[string]Seen{first.Granule: seen(gone)})
	publishAll(t, s.Sink, next)
	want(t, s, "sea", map[string]Seen{first.Granule: seen(next)})
}

func owned(t *testing.T, s Subject) {
	place := placeOf(t, s.Sink)
	if o, err := place.Owner(t.Context()); err != nil || o != (publish.Owner{}) {
		t.Fatalf("Owner() = %+v, %v of a fresh place, want nobody", o, err)
	}
	first := publish.Owner{State: "one", Epoch: 1, Since: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	second := publish.Owner{State: "two", Epoch: 2, Since: first.Since.Add(time.Hour)}
	other := placeOf(t, s.Restart(t)) // of another process
	a := Product(t, "sea", "a", 1)
	for _, o := range []publish.Owner{first, second} {
		if err := place.Claim(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		publishAll(t, s.Sink, a)
		for _, p := range []publish.Place{place, other} {
			if got, err := p.Owner(t.Context()); err != nil || got != o {
				t.Errorf("Owner() = %+v, %v, want %+v", got, err, o)
			}
		}
	}
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)}) // receivers see no more than products
}

func holdings(t *testing.T, s Subject) {
	a, later, b := Product(t, "sea", "a", 1), Product(t, "sea", "a", 3), Product(t, "lake", "b", 1)
	publishAll(t, s.Sink, a, later, b)
	b = retract(t, s.Sink, b)
	got := map[string]publish.Holding{}
	collect := func(h publish.Holding) error {
		if b.Key() == h.Key() {
			h.SHA256 = "" // optional for a retraction
		}
		h.At = time.Time{}
		got[h.Key()] = h
		return nil
	}
	place := placeOf(t, s.Restart(t))
	if err := place.Holdings(t.Context(), time.Time{}, collect); err != nil {
		t.Fatal(err)
	}
	want := map[string]publish.Holding{
		a.Key(): {Dataset: "sea", Granule: a.Granule, Revision: 3, SHA256: later.SHA256},
		b.Key(): {Dataset: "lake", Granule: b.Granule, Revision: 1, Retracted: true},
	}
	if !maps.Equal(got, want) {
		t.Errorf("Holdings() = %+v, want %+v", got, want)
	}
	clear(got)
	if err := place.Holdings(t.Context(), time.Now().Add(time.Hour), collect); err != nil || len(got) != 0 {
		t.Errorf("Holdings() = %+v, %v since an hour from now, want none", got, err)
	}
	stop := errors.New("enough")
	if err := place.Holdings(t.Context(), time.Time{}, func(publish.Holding) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Holdings() = %v after each returned an error, want that error", err)
	}
}

func placeOf(t *testing.T, s publish.Sink) publish.Place {
	t.Helper()
	place, ok := s.(publish.Place)
	if !ok {
		t.Fatalf("%T does not implement publish.Place", s)
	}
	return place
}

// wantConflict checks that an error says which bytes have the revision.
func wantConflict(t *testing.T, err error, there, other publish.Product) {
	t.Helper()
	var c *publish.Conflict
	if !errors.As(err, &c) || !errors.Is(err, publish.ErrConflict) {
		t.Fatalf("other bytes under the same revision: %v, want a *publish.Conflict", err)
	}
	if c.ID != there.ID() || c.There != there.SHA256 || c.SHA256 != other.SHA256 || c.Highest != there.Revision {
		t.Errorf("conflict is %+v, want %s with %s there and %s refused", c, there.ID(), there.SHA256, other.SHA256)
	}
}
