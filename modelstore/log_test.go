package modelstore

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestUnfinishedLineIsIgnoredAndMended(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, a)
	whole, err := os.ReadFile(s.logPath())
	if err != nil {
		t.Fatal(err)
	}
	promote(t, s, b)
	both, err := os.ReadFile(s.logPath())
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut < len(both); cut++ {
		h := parseLog(both[:cut])
		if now, _ := h.champion("blk-chl"); now.Version != a.ID || h.bad != nil {
			t.Fatalf("cut at %d: champion is %s, %v, want a", cut, now.Version, h.bad)
		}
		if cut%50 != 0 && cut != len(both)-1 {
			continue // every cut is read, some are written on
		}
		if err := os.WriteFile(s.logPath(), both[:cut], fileMode); err != nil {
			t.Fatal(err)
		}
		e := promote(t, s, b)
		if e.TornBytes != int64(cut-len(whole)) {
			t.Errorf("cut at %d: entry says %d bytes were torn", cut, e.TornBytes)
		}
		if got := champion(t, s); got != b.ID {
			t.Fatalf("cut at %d, mended: champion is %s, want b", cut, got)
		}
	}
}

func TestUnfinishedLineLongerThanTheNextIsMended(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, a)
	file, err := os.OpenFile(s.logPath(), os.O_APPEND|os.O_WRONLY, fileMode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"seq":2,"why":["` + strings.Repeat("long ", 1000)); err != nil {
		t.Fatal(err)
	}
	file.Close()
	promote(t, s, b)
	if h, err := s.readHistory(); err != nil || h.bad != nil || h.tornBytes != 0 || len(h.entries) != 2 {
		t.Errorf("after mending: %+v, %v", h, err)
	}
}

func TestEveryChangedByteOfTheLogShows(t *testing.T) {
	s := newStore(t)
	a, b := write(t, s, "a"), write(t, s, "b")
	promote(t, s, a)
	promote(t, s, b)
	good, err := os.ReadFile(s.logPath())
	if err != nil {
		t.Fatal(err)
	}
	firstLine := bytes.IndexByte(good, '\n') + 1
	for i := range good[:len(good)-1] { // without the last newline an entry is unfinished, not wrong
		changed := slices.Clone(good)
		changed[i] ^= 1
		h := parseLog(changed)
		wantSound := 0
		if i >= firstLine {
			wantSound = 1
		}
		if h.bad == nil || len(h.entries) != wantSound {
			t.Fatalf("byte %d changed from %q to %q: %d entries, %v; want %d and a BadLog", i, good[i], changed[i], len(h.entries), h.bad, wantSound)
		}
	}
	if h := parseLog(good[firstLine:]); h.bad == nil {
		t.Error("the first line was taken out and nobody noticed")
	}
}

func TestDamagedLogStillServesAndRefusesChanges(t *testing.T) {
	s := newStore(t)
	a, b, c := write(t, s, "a"), write(t, s, "b"), write(t, s, "c")
	promote(t, s, a)
	promote(t, s, b)
	promote(t, s, c)
	data, err := os.ReadFile(s.logPath())
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte(`"seq":3`), []byte(`"seq":4`), 1)
	if err := os.WriteFile(s.logPath(), data, fileMode); err != nil {
		t.Fatal(err)
	}
	serving, err := s.LoadChampion("blk-chl")
	var bad *BadLog
	if err != nil || serving.Version.ID != b.ID || len(serving.Problems) != 1 || !errors.As(serving.Problems[0], &bad) || bad.Line != 3 {
		t.Errorf("serving %+v, %v; want b and a BadLog about line 3", serving, err)
	}
	if _, err := s.Promote(t.Context(), Change{Version: a.ID}); !errors.As(err, &bad) {
		t.Errorf("Promote() = %v, want BadLog", err)
	}
	if _, err := s.GC(t.Context(), Retention{}, false); !errors.As(err, &bad) {
		t.Errorf("GC() = %v, want BadLog: a champion might be in the part that cannot be read", err)
	}
	if after, _ := os.ReadFile(s.logPath()); !bytes.Equal(after, data) {
		t.Error("the damaged log was changed")
	}
}
