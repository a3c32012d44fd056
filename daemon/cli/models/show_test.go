package models

import (
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/modelstore"
)

// show returns the output of lacuna models show.
func show(t *testing.T, store, id string, flags ...string) string {
	t.Helper()
	c := modelsCommand()
	var out strings.Builder
	c.SetOut(&out)
	c.SetErr(&strings.Builder{})
	c.SetArgs(append([]string{"show", id, "--store", store}, flags...))
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestShowListsTheDaysOfAVersionByTheirUse(t *testing.T) {
	store := modelstore.New(filepath.Join(t.TempDir(), "store"), time.Now)
	write := func(split modelstore.Split) string {
		v, err := store.Write(t.Context(), modelstore.Card{Kind: "trained", Dataset: "sea", Variable: "CHL", Split: split},
			map[string]io.Reader{modelstore.ImputerFile: strings.NewReader("weights")})
		if err != nil {
			t.Fatal(err)
		}
		return v.ID
	}
	id := write(modelstore.Split{
		TrainDays: 3, CheckDays: 1, TestDays: 1, Learn: []string{"2024-04-01", "2024-04-02"}, Choose: []string{"2024-06-01"}, Judge: []string{"2024-07-01"},
		Seas: map[string]modelstore.Sea{
			"west": {Learn: []string{"2024-04-01", "2024-04-02"}, Choose: []string{"2024-06-01"}, Judge: []string{"2024-07-01"}},
			"east": {Learn: []string{"2024-04-01"}},
		},
	})
	type days struct{ Learn, Choose, Judge []string }
	var page struct {
		Split struct {
			days
			Seas map[string]days
		}
	}
	read := func(id string) {
		t.Helper()
		page.Split.days, page.Split.Seas = days{}, nil
		text := show(t, store.Dir(), id, "--json")
		if err := json.Unmarshal([]byte(text), &page); err != nil || strings.Contains(text, `"learn":null`) {
			t.Fatalf("%v in %s", err, text)
		}
	}
	read(id)
	s := page.Split
	if !slices.Equal(s.Learn, []string{"2024-04-01", "2024-04-02"}) || !slices.Equal(s.Choose, []string{"2024-06-01"}) || !slices.Equal(s.Judge, []string{"2024-07-01"}) ||
		len(s.Seas) != 2 || len(s.Seas["west"].Learn) != 2 || len(s.Seas["east"].Learn) != 1 || len(s.Seas["east"].Judge) != 0 {
		t.Errorf("split is %+v", s)
	}
	if text := show(t, store.Dir(), id); !strings.Contains(text, "3 days to learn from, 1 to choose by, 1 to judge on, of 2 seas") {
		t.Errorf("the text is %s", text)
	}
	old := write(modelstore.Split{TrainDays: 290, TestDays: 137})
	if read(old); len(page.Split.Learn) != 0 || len(page.Split.Seas) != 0 {
		t.Errorf("split of a version that is older than lists is %+v", page.Split)
	}
}
