package ledger

import (
	"bytes"
	"encoding/json"
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
