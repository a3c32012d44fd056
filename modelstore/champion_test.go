package modelstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func promote(t testing.TB, s *Store, v *Version) Entry {
	t.Helper()
	e, err := s.Promote(t.Context(), Change{Version: v.ID, By: "test", Why: []string{"mse 0.25 to 0.125"}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func rollback(t testing.TB, s *Store) Entry {
	t.Helper()
	e, _, err := s.Rollback(t.Context(), "blk-chl", "test", "seams")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// champion returns the version that serves, which must have no problems.
func champion(t testing.TB, s *Store) string {
	t.Helper()
	serving, err := s.LoadChampion("blk-chl")
	if err != nil {
		t.Fatal(err)
	}
	if len(serving.Problems) > 0 {
		t.Fatalf("champion with problems: %v", serving.Problems)
	}
	return serving.Version.ID
}

// spoil damages a file of a version.
func spoil(t testing.TB, v *Version) {
	t.Helper()
	path := filepath.Join(v.dir, ImputerFile)
	if err := errors.Join(os.Chmod(path, fileMode), damages["changed"](path)); err != nil {
		t.Fatal(err)
	}
}

func TestLogSaysWhoBecameChampionWhenAndWhy(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, a)
	promote(t, s, b)
	entries, err := s.Log()
	if err != nil || len(entries) != 2 {
		t.Fatalf("Log() = %v, %v", entries, err)
	}
	e := entries[1]
	if e.Version != b.ID || e.Previous != a.ID || e.By != "test" || e.Why[0] != "mse 0.25 to 0.125" || e.Dataset != "blk-chl" || !e.Time.After(entries[0].Time) || e.Seq != 2 {
		t.Errorf("second entry is %+v", e)
	}
	if got := champion(t, s); got != b.ID {
		t.Errorf("champion is %s, want the newest", got)
	}
}

func TestPromotingTheChampionAgainWritesNothing(t *testing.T) {
	s := newStore(t)
	a := write(t, s, "a")
	first := promote(t, s, a)
	if again := promote(t, s, a); again.Seq != first.Seq {
		t.Errorf("entry %d, want the standing entry %d", again.Seq, first.Seq)
	}
	if entries, _ := s.Log(); len(entries) != 1 {
		t.Errorf("%d entries", len(entries))
	}
}

func TestDatasetsHaveTheirOwnChampions(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, a)
	if _, err := s.Promote(t.Context(), Change{Dataset: "med-sst", Version: b.ID}); err != nil {
		t.Fatal(err)
	}
	champions, err := s.Champions()
	if err != nil || champions["blk-chl"].Version != a.ID || champions["med-sst"].Version != b.ID {
		t.Errorf("Champions() = %v, %v", champions, err)
	}
	if champions["med-sst"].Previous != "" {
		t.Error("the champion of another dataset is called the previous one")
	}
}

func TestRollbackGoesBackStepByStep(t *testing.T) {
	s := newStore(t)
	a, b, c := write(t, s, "a"), write(t, s, "b"), write(t, s, "c")
	for _, v := range []*Version{a, b, c} {
		promote(t, s, v)
	}
	if e := rollback(t, s); e.Version != b.ID || e.Previous != c.ID || e.Action != RolledBack {
		t.Errorf("first rollback: %+v, want from c to b", e)
	}
	if e := rollback(t, s); e.Version != a.ID || e.Previous != b.ID {
		t.Errorf("second rollback: %+v, want from b to a, not back to c", e)
	}
	if _, _, err := s.Rollback(t.Context(), "blk-chl", "test", ""); !errors.Is(err, ErrNoChampion) {
		t.Errorf("third rollback: %v, want ErrNoChampion", err)
	}
	promote(t, s, c)
	if e := rollback(t, s); e.Version != a.ID {
		t.Errorf("rollback after a new promotion: to %s, want a", e.Version)
	}
	if entries, err := s.Log(); err != nil || len(entries) != 7 {
		t.Errorf("%d entries, %v: nothing may be taken out of the log", len(entries), err)
	}
}

func TestRollbackSkipsVersionsThatDoNotLoad(t *testing.T) {
	s := newStore(t)
	a, b, c := write(t, s, "a"), write(t, s, "b"), write(t, s, "c")
	for _, v := range []*Version{a, b, c} {
		promote(t, s, v)
	}
	spoil(t, b)
	e, passed, err := s.Rollback(t.Context(), "blk-chl", "test", "seams")
	if err != nil || e.Version != a.ID {
		t.Fatalf("rolled back to %s, %v, want a", e.Version, err)
	}
	if len(passed) != 1 || !strings.Contains(passed[0].Error(), b.ID) {
		t.Errorf("passed over %v, want b by name", passed)
	}
}

func TestLastGoodVersionServes(t *testing.T) {
	s := newStore(t)
	a, b, c := write(t, s, "a"), write(t, s, "b"), write(t, s, "c")
	for _, v := range []*Version{a, b, c} {
		promote(t, s, v)
	}
	spoil(t, c)
	unlockFolders(s.dir)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	serving, err := s.LoadChampion("blk-chl")
	if err != nil || serving.Version.ID != a.ID || serving.Entry.Version != a.ID {
		t.Fatalf("%+v, %v serves, want a", serving, err)
	}
	var bad *BadVersion
	for i, want := range []*Version{c, b} {
		if !errors.As(serving.Problems[i], &bad) || bad.Version != want.ID {
			t.Errorf("problem %d is %v, want one with %s", i, serving.Problems[i], want.ID)
		}
	}
	spoil(t, a)
	if _, err := s.LoadChampion("blk-chl"); !errors.Is(err, ErrNoChampion) || !strings.Contains(err.Error(), a.ID) {
		t.Errorf("with nothing good left: %v, want ErrNoChampion that names the versions tried", err)
	}
}

func TestDamagedVersionIsNotPromoted(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, a)
	spoil(t, b)
	_, err := s.Promote(t.Context(), Change{Version: b.ID})
	var bad *BadVersion
	if !errors.As(err, &bad) || bad.File != ImputerFile {
		t.Errorf("Promote() = %v, want a BadVersion", err)
	}
	if got := champion(t, s); got != a.ID {
		t.Errorf("champion is %s", got)
	}
}

func TestDecisionAgainstAFormerChampionIsRefused(t *testing.T) {
	s := newStore(t)
	a, b, c := write(t, s, "a"), write(t, s, "b"), write(t, s, "c")
	if _, err := s.PromoteOver(t.Context(), "", Change{Version: a.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PromoteOver(t.Context(), a.ID, Change{Version: b.ID}); err != nil {
		t.Fatal(err)
	}
	_, err := s.PromoteOver(t.Context(), a.ID, Change{Version: c.ID})
	if !errors.Is(err, ErrChampionChanged) || !strings.Contains(err.Error(), b.ID) {
		t.Errorf("PromoteOver() = %v, want ErrChampionChanged with the champion", err)
	}
	if got := champion(t, s); got != b.ID {
		t.Errorf("champion is %s, want b", got)
	}
}

func TestOfManyGoroutinesOneWins(t *testing.T) {
	s := newStore(t)
	s.now = time.Now
	var versions []*Version
	for _, note := range strings.Fields("a b c d e f g h") {
		versions = append(versions, write(t, s, note))
	}
	var wg sync.WaitGroup
	won := make(chan string, len(versions))
	for _, v := range versions {
		wg.Go(func() {
			_, err := s.PromoteOver(t.Context(), "", Change{Version: v.ID})
			switch {
			case err == nil:
				won <- v.ID
			case !errors.Is(err, ErrChampionChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 || champion(t, s) != <-won {
		t.Errorf("%d won, want the champion and nobody else", len(won))
	}
}

func TestRefusedChallengerStaysWithItsReasons(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, a)
	why := []string{"mse 0.30 is worse than 0.25", "seams at tile borders"}
	if _, err := s.Refuse(t.Context(), Change{Version: b.ID, By: "gate", Why: why}); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Log()
	if err != nil || entries[1].Action != Refused || !slices.Equal(entries[1].Why, why) || entries[1].Previous != a.ID {
		t.Errorf("Log() = %+v, %v", entries, err)
	}
	if got := champion(t, s); got != a.ID {
		t.Errorf("champion is %s after a refusal, want a", got)
	}
	if _, err := s.Refuse(t.Context(), Change{Version: b.ID}); err == nil {
		t.Error("refused without a reason")
	}
	if _, err := s.Refuse(t.Context(), Change{Version: a.ID, Why: why}); err == nil {
		t.Error("the champion was refused, and still serves")
	}
}

func TestWatchSeesAPromotionByAnother(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	watch := New(s.dir, s.now).Watch()
	for _, v := range []*Version{a, b} {
		if changed, err := watch.Changed(); changed || err != nil {
			t.Errorf("Changed() = %v, %v before anything changed", changed, err)
		}
		promote(t, s, v)
		if changed, err := watch.Changed(); !changed || err != nil {
			t.Errorf("Changed() = %v, %v after a promotion", changed, err)
		}
	}
}

func TestWatchSeesAVersionBeingRestored(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "a")
	archive := export(t, s, v.ID)
	promote(t, s, v)
	spoil(t, v)
	watch := s.Watch()
	if _, err := s.Import(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	if changed, err := watch.Changed(); !changed || err != nil {
		t.Errorf("Changed() = %v, %v after the champion was restored", changed, err)
	}
}

func TestResolveFindsVersionsByShortNames(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, b)
	for ref, want := range map[string]string{
		a.ID: a.ID, "champion": b.ID, "blk-chl": b.ID, a.ID[len(a.ID)-idDigits:][:6]: a.ID,
		a.ID[:len(a.ID)-4]: a.ID,
	} {
		if got, err := s.Resolve(ref); got != want || err != nil {
			t.Errorf("Resolve(%q) = %s, %v, want %s", ref, got, err, want)
		}
	}
	for _, ref := range []string{"", "med-sst", "blk-chl-2024"} {
		if got, err := s.Resolve(ref); err == nil {
			t.Errorf("Resolve(%q) = %s, want an error", ref, got)
		}
	}
}

func TestStatesDescribeEveryVersion(t *testing.T) {
	s := newStore(t)
	a, b, c, d, e := write(t, s, "a"), write(t, s, "b"), write(t, s, "c"), write(t, s, "d"), write(t, s, "e")
	promote(t, s, a)
	promote(t, s, b)
	promote(t, s, c)
	rollback(t, s)
	if _, err := s.Refuse(t.Context(), Change{Version: d.ID, Why: []string{"worse"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Pin(t.Context(), d.ID, "test", "look into it"); err != nil {
		t.Fatal(err)
	}
	states, err := s.States()
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[*Version]string{
		a: "former champion of blk-chl", b: "champion of blk-chl", c: "rolled back", d: "refused, pinned", e: "",
	} {
		if got := strings.Join(states[v.ID], ", "); got != want {
			t.Errorf("%s is %q, want %q", v.Card.Note, got, want)
		}
	}
	promote(t, s, c)
	if states, _ = s.States(); !slices.Equal(states[c.ID], []string{"champion of blk-chl"}) {
		t.Errorf("promoted again it is %v", states[c.ID])
	}
}
