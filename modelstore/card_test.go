package modelstore

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"lacuna/internal/golden"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// wholeCard is testCard as it is stored.
func wholeCard() Card {
	card := testCard("one")
	card.Schema, card.Created = CardSchema, day0
	card.Files = []File{{Name: ImputerFile, Bytes: 8400000, SHA256: strings.Repeat("c", 64)}}
	return card
}

func encode(t testing.TB, c Card) []byte {
	t.Helper()
	data, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCardComesBackAsItWas(t *testing.T) {
	want := wholeCard()
	got, err := DecodeCard(encode(t, want))
	if err != nil {
		t.Fatal(err)
	}
	// A section of settings is the same if it says the same.
	same := cmp.Transformer("json", func(r json.RawMessage) any {
		var v any
		_ = json.Unmarshal(r, &v)
		return v
	})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Card{}), same); diff != "" {
		t.Errorf("card changed on its way (-want +got):\n%s", diff)
	}
}

func TestFieldsOfANewerLacunaAreKept(t *testing.T) {
	var tree map[string]any
	if err := json.Unmarshal(encode(t, wholeCard()), &tree); err != nil {
		t.Fatal(err)
	}
	tree["schema"] = CardSchema + 1
	tree["quantum"] = map[string]any{"spin": 12345678901234567}
	tree["training"].(map[string]any)["joules"] = 5e6
	tree["split"].(map[string]any)["folds"] = []any{1.0, 2.0}
	newer, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	card, err := DecodeCard(newer)
	if err != nil {
		t.Fatalf("a newer card cannot be read: %v", err)
	}
	card.Note = ""             // a known field can be cleared
	card.Training.Steps = 2000 // and another changed
	data := encode(t, card)
	for _, want := range []string{`"spin": 12345678901234567`, `"joules": 5000000`, `"folds"`, `"steps": 2000`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("the card written again lacks %s:\n%s", want, data)
		}
	}
	if bytes.Contains(data, []byte(`"note": "one"`)) {
		t.Error("a field that was cleared came back")
	}
	if !strings.Contains(card.Text(), "newer Lacuna") {
		t.Error("the text does not say that something is not shown")
	}
}

func TestChildCardIsOfTheSameKindAndHasItsOwnStory(t *testing.T) {
	s := newStore(t)
	parent := write(t, s, "parent")
	child := parent.Card.Child(parent.ID)
	if child.Parent != parent.ID || child.Dataset != "blk-chl" || child.Normalisation != parent.Card.Normalisation {
		t.Errorf("child is %+v", child)
	}
	if len(child.Data.Granules) != 0 || len(child.Scores.Challenger) != 0 || !reflect.ValueOf(child.Training).IsZero() || !child.Created.IsZero() {
		t.Errorf("child claims its parent's training as its own: %+v", child)
	}
	child.Networks = nil
	if v, err := s.Write(t.Context(), child, nil); err != nil || v.Card.Parent != parent.ID {
		t.Errorf("Write() = %v, %v", v, err)
	}
}

func TestTextDescribesTheCard(t *testing.T) {
	golden.Compare(t, "card.txt", []byte(wholeCard().Text()))
}

func TestTextDoesNotMoveTheCursor(t *testing.T) {
	card := wholeCard()
	card.Note = "harmless\x1b[2J\r\nparent none\u009b1A"
	if text := card.Text(); strings.ContainsAny(text, "\x1b\r\u009b") || strings.Contains(text, "\nparent none") {
		t.Errorf("a note from elsewhere gets control of the terminal: %q", text)
	}
}

func TestDiffShowsDifferentFields(t *testing.T) {
	a, b := wholeCard(), wholeCard()
	b.Training.Steps = 2000
	b.Networks = append([]Network{{File: PriorFile, Size: "tiny"}}, b.Networks...)
	b.Settings = map[string]json.RawMessage{"train": json.RawMessage(`{"batch":8,"lr":0.0001}`)}
	b.Data.Granules = append(b.Data.Granules[1:], Granule{Name: "c.nc"}, Granule{Name: "d.nc"})
	got, err := Diff(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{"networks.prior.onnx.file", "", "prior.onnx"},
		{"networks.prior.onnx.parameters", "", "0"},
		{"networks.prior.onnx.size", "", "tiny"},
		{"settings.train.lr", "0.0003", "0.0001"},
		{"training.steps", "1000", "2000"},
		{"data.granules", "2, of which 1 only here", "3, of which 2 only here"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
	if same, err := Diff(a, a); len(same) != 0 || err != nil {
		t.Errorf("a card differs from itself in %v, %v", same, err)
	}
}
