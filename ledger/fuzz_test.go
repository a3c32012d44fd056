package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// FuzzJournal puts arbitrary bytes between good lines of a journal, as a damaged
// disk does: the good lines are still found, in order.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"dataset":"chl","name":"b.nc","revi`))
	f.Add([]byte("\x00\x00\n\n{}\n[1]\nnull\n{\"dataset\":\"\"}\n{\"dataset\":\"x\",\"recorded\":\"2024\"}"))
	f.Add([]byte(`{"dataset":"chl","name":"c.nc","publication":{"body":{}},"grid":null,"identity":{"state":"s","epoch":1}}`))
	first, last := Fact{Dataset: "chl", Name: "first.nc", Revision: 1}, Fact{Dataset: "chl", Name: "last.nc", Revision: 2}
	line := func(fact Fact) []byte {
		text, err := json.Marshal(fact)
		if err != nil {
			f.Fatal(err)
		}
		return append(text, '\n')
	}
	f.Fuzz(func(t *testing.T, damage []byte) {
		content := bytes.Join([][]byte{line(first), damage, []byte("\n"), line(last)}, nil)
		var found []string
		for fact, err := range factsIn(bytes.NewReader(content)) {
			if err != nil {
				t.Fatal(err)
			}
			if fact.Dataset == "" {
				t.Errorf("a line without a dataset was yielded: %+v", fact)
			}
			found = append(found, fact.Name)
		}
		if len(found) < 2 || found[0] != first.Name || found[len(found)-1] != last.Name {
			t.Errorf("the journal has %q", found)
		}
	})
}

// A line that is too long for memory, as of a file that was grown by a damaged disk,
// costs itself only.
func TestAJournalIsReadOverALineWithoutEnd(t *testing.T) {
	line := func(name string) []byte { return []byte(`{"dataset":"chl","name":"` + name + `","revision":1}` + "\n") }
	long := append(bytes.Repeat([]byte("x"), longestLine+1), '\n')
	content := slices.Concat(line("first.nc"), long, line("second.nc"), bytes.TrimSpace(line("third.nc")))
	var found []string
	for fact, err := range factsIn(bytes.NewReader(content)) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fact.Name)
	}
	if want := []string{"first.nc", "second.nc", "third.nc"}; !slices.Equal(found, want) {
		t.Errorf("the journal has %q, want %q", found, want)
	}
}
