package modelstore

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzCard feeds arbitrary bytes to the card: a card that is read can be
// written, and is read back as the same.
func FuzzCard(f *testing.F) {
	f.Add(encode(f, wholeCard()))
	f.Add([]byte(`{"schema":9,"dataset":"a","created":"2024-04-01T00:00:00Z","later":[1],"data":{"later":{}},"files":null}`))
	f.Add([]byte(`{"Schema":1,"schema":2,"DATASET":"a","created":"2024-04-01T00:00:00+23:59","split":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		card, err := DecodeCard(data)
		if err != nil {
			return
		}
		if text := card.Text(); strings.Contains(text, "\x1b") {
			t.Error("the text has control characters")
		}
		first, err := card.Encode()
		if err != nil {
			t.Fatalf("a card that was read cannot be written: %v", err)
		}
		again, err := DecodeCard(first)
		if err != nil {
			t.Fatalf("a card that was written cannot be read: %v\n%s", err, first)
		}
		if second, err := again.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("a card changes each time it is written: %v\n%s\n%s", err, first, second)
		}
		if id := versionID(card, data); !validID(id) {
			t.Errorf("version is called %q", id)
		}
	})
}

// FuzzLog puts arbitrary bytes after a good log: they never change the entries
// of the good part.
func FuzzLog(f *testing.F) {
	var good []byte
	chain := ""
	for i := range 2 {
		e := Entry{Seq: i + 1, Time: time.Unix(0, 0).UTC(), Action: Promoted, Dataset: "a", Version: "a-2024-04-01-0123456789abcde" + string(rune('0'+i))}
		line, next, err := formatLine(e, chain)
		if err != nil {
			f.Fatal(err)
		}
		good, chain = append(good, line...), next
	}
	want := parseLog(good)
	if want.bad != nil || len(want.entries) != 2 {
		f.Fatalf("%+v", want)
	}
	third, _, _ := formatLine(Entry{Seq: 3, Action: RolledBack, Dataset: "a", Version: "a-2024-04-01-0123456789abcde0"}, chain)
	f.Add(third)
	f.Add(third[:40])
	f.Add([]byte("\n"))
	f.Add(good)
	f.Fuzz(func(t *testing.T, tail []byte) {
		h := parseLog(append(slices.Clone(good), tail...))
		if len(h.entries) < 2 || h.entries[0].Version != want.entries[0].Version || h.entries[1].Version != want.entries[1].Version {
			t.Fatalf("%d entries, the good ones changed", len(h.entries))
		}
		if h.goodBytes < int64(len(good)) || h.goodBytes+h.tornBytes > int64(len(good)+len(tail)) {
			t.Errorf("%d good and %d torn bytes of %d", h.goodBytes, h.tornBytes, len(good)+len(tail))
		}
		now, _ := h.champion("a")
		if len(h.entries) == 2 && now.Version != want.entries[1].Version {
			t.Error("the champion changed without an entry")
		}
		parseLog(tail)
	})
}
