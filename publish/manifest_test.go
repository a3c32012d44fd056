package publish

import (
	"errors"
	"slices"
	"strings"
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
		current bool // the step concerns the current revision
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
	if got := DefaultFolders.Folder("d", late) + "/" + ManifestName(late) + " " + Day(late); got != "d/2024/05/20240501.manifest.json 2024-05-01" {
		t.Errorf("places are %s", got)
	}
}

func TestADisplacedRevisionLeavesNoHashBehind(t *testing.T) {
	first := Entry{Granule: "a", Revision: 1, SHA256: "one", Size: 1}
	wrong := Entry{Granule: "a", Revision: 2, SHA256: "two", Size: 2}
	next := Entry{Granule: "a", Revision: 3, SHA256: "three", Size: 3}
	p := Product{Granule: "a", Revision: 2, SHA256: "two", Displaced: true, Why: "why"}
	for name, order := range map[string]func(m Manifest) Manifest{
		"while it is current": func(m Manifest) Manifest {
			m, current, err := m.Withdraw(p, wrong)
			if !current || err != nil {
				t.Errorf("Withdraw() = %v, %v", current, err)
			}
			m, _ = m.Add(next)
			return m
		},
		"after the next": func(m Manifest) Manifest {
			m, _ = m.Add(next)
			m, current, err := m.Withdraw(p, wrong)
			if current || err != nil {
				t.Errorf("Withdraw() = %v, %v", current, err)
			}
			return m
		},
	} {
		m, _ := Manifest{}.Add(first)
		m, _ = m.Add(wrong)
		got, _ := order(m).Entry("a")
		want := next
		want.Superseded = []Superseded{{Revision: 1, SHA256: "one", Size: 1}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPlaceAdmitsItsOwnerOnly(t *testing.T) {
	mine := Owner{State: "mine", Epoch: 3}
	tests := []struct {
		name  string
		there Owner
		want  string // part of the message; empty: admitted
	}{
		{"nobody's", Owner{}, ""},
		{"mine", mine, ""},
		{"mine of an earlier epoch", Owner{State: "mine", Epoch: 2}, ""},
		{"mine of a later epoch", Owner{State: "mine", Epoch: 4}, "epoch 4"},
		{"another's", Owner{State: "yours", Epoch: 1}, "lacuna publish takeover"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.there.Admits(mine)
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Admits() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}
