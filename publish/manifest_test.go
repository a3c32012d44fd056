package publish

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func entry(granule string, revision int) Entry {
	return EntryOf(Product{
		Dataset: "d", Granule: granule, Name: granule + ".nc", Revision: revision,
		Time: time.Date(2024, 4, 30, 12, 0, 0, 0, time.UTC), SHA256: "s", Size: int64(revision),
	})
}

func TestManifestKnowsWhichRevisionHolds(t *testing.T) {
	var m Manifest
	steps := []struct {
		name    string
		do      func(Manifest) (Manifest, bool)
		current bool // the step concerns what is current
		holds   int  // the revision that holds afterwards; 0: none
		before  []int
	}{
		{"first", func(m Manifest) (Manifest, bool) { return m.Add(entry("a", 2)) }, true, 2, nil},
		{"again", func(m Manifest) (Manifest, bool) { return m.Add(entry("a", 2)) }, true, 2, nil},
		{"an older one comes late", func(m Manifest) (Manifest, bool) { return m.Add(entry("a", 1)) }, false, 2, []int{1}},
		{"a newer one", func(m Manifest) (Manifest, bool) { return m.Add(entry("a", 3)) }, true, 3, []int{1, 2}},
		{"an older one is retracted", func(m Manifest) (Manifest, bool) { return m.Retract(entry("a", 2), "x") }, false, 3, []int{1, 2}},
		{"the current one is retracted", func(m Manifest) (Manifest, bool) { return m.Retract(entry("a", 3), "x") }, true, 0, []int{1, 2}},
		{"it does not come back", func(m Manifest) (Manifest, bool) { return m.Add(entry("a", 3)) }, false, 0, []int{1, 2}},
		{"a newer one still", func(m Manifest) (Manifest, bool) { return m.Add(entry("a", 4)) }, true, 4, []int{1, 2, 3}},
		{"another is retracted unseen", func(m Manifest) (Manifest, bool) { return m.Retract(entry("b", 1), "x") }, true, 4, []int{1, 2, 3}},
	}
	for _, step := range steps {
		before := m
		beforeText, _ := before.Encode()
		next, current := step.do(m)
		if text, _ := before.Encode(); string(text) != string(beforeText) {
			t.Errorf("%s: the manifest before was changed", step.name)
		}
		m = next
		e, _ := m.Entry("a")
		holds := 0
		if e.Live() {
			holds = e.Revision
		}
		var superseded []int
		for _, s := range e.Superseded {
			superseded = append(superseded, s.Revision)
		}
		if current != step.current || holds != step.holds || !slices.Equal(superseded, step.before) {
			t.Errorf("%s: current %v, revision %d holds, superseded %v", step.name, current, holds, superseded)
		}
	}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseManifest(text)
	if diff := cmp.Diff(m, again); diff != "" || err != nil {
		t.Errorf("read back %v (-want +got):\n%s", err, diff)
	}
}

func TestPlacesFollowTheDayInUTC(t *testing.T) {
	late := time.Date(2024, 4, 30, 23, 30, 0, 0, time.FixedZone("west", -3600))
	if got := Folder("d", late) + "/" + ManifestName(late) + " " + Day(late); got != "d/2024/05/20240501.manifest.json 2024-05-01" {
		t.Errorf("places are %s", got)
	}
}
