package chaos

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// sound is what is seen of a service that does everything right.
func sound() seen {
	s := seen{
		places:  []string{"folder", "bucket", "zarr", "topic"},
		objects: map[string]string{"sea/a.nc": "a2", "sea/b.nc": "b1", "sea/bad.nc": "x"},
		fates:   map[string]fate{"sea/a.nc": {sha256: "a2", done: true}, "sea/b.nc": {sha256: "b1", done: true}, "sea/bad.nc": {reason: "is no NetCDF"}},
		spoiled: map[string]bool{"sea/bad.nc": true},
		before:  figures{descriptors: 20, goroutines: 60}, after: figures{descriptors: 22, goroutines: 70},
	}
	for _, place := range append(s.places, "ledger", "file") {
		s.claims = append(s.claims,
			claim{place: place, dataset: "sea", granule: "a.nc", revision: 1, sha256: "pa1"},
			claim{place: place, dataset: "sea", granule: "a.nc", revision: 2, sha256: "pa2"},
			claim{place: place, dataset: "sea", granule: "b.nc", revision: 1, sha256: "pb1"})
	}
	return s
}

func TestCheckerFindsEveryWrongState(t *testing.T) {
	// edit changes the claims of a place.
	edit := func(s *seen, place string, revision int, change func(*claim)) {
		for i := range s.claims {
			if c := &s.claims[i]; c.place == place && c.granule == "a.nc" && c.revision == revision {
				change(c)
			}
		}
	}
	drop := func(s *seen, place string, revision int) {
		s.claims = slices.DeleteFunc(s.claims, func(c claim) bool { return c.place == place && c.granule == "a.nc" && c.revision == revision })
	}
	tests := []struct {
		name  string
		plant func(*seen)
		want  string // part of what is found; empty: nothing
	}{
		{"nothing", func(*seen) {}, ""},
		{"other bytes in the bucket", func(s *seen) { edit(s, "bucket", 2, func(c *claim) { c.sha256 = "other" }) }, "two contents"},
		{"other bytes in the file of a revision", func(s *seen) { edit(s, "file", 1, func(c *claim) { c.sha256 = "other" }) }, "two contents"},
		{"other bytes announced for a revision that was replaced", func(s *seen) { edit(s, "topic", 1, func(c *claim) { c.sha256 = "other" }) }, "two contents"},
		{"a sink was not told of the last revision", func(s *seen) { drop(s, "topic", 2) }, "r1 in topic"},
		{"a sink was told of a revision that nobody made", func(s *seen) { edit(s, "zarr", 2, func(c *claim) { c.revision = 3 }) }, "r3 in zarr"},
		{"a sink has nothing", func(s *seen) { drop(s, "folder", 1); drop(s, "folder", 2) }, "folder has no sea/a.nc"},
		{"the ledger has forgotten a product", func(s *seen) { drop(s, "ledger", 1); drop(s, "ledger", 2) }, "the ledger does not know"},
		{"retracted, and a sink does not know", func(s *seen) { edit(s, "ledger", 2, func(c *claim) { c.retracted = true }) }, "retracted"},
		{"an object was never seen", func(s *seen) { delete(s.fates, "sea/b.nc") }, "lost: the ledger has no sea/b.nc"},
		{"a correction was missed", func(s *seen) { s.objects["sea/a.nc"] = "a3" }, "a2 was taken up"},
		{"a mixture of two contents was taken up", func(s *seen) { s.fates["sea/a.nc"] = fate{sha256: "a1a2", done: true} }, "a1a2 was taken up"},
		{"stuck before its product", func(s *seen) { s.fates["sea/b.nc"] = fate{sha256: "b1"} }, "has no product"},
		{"a good granule set aside", func(s *seen) { s.fates["sea/b.nc"] = fate{sha256: "b1", reason: "cannot be read"} }, "good granule"},
		{"set aside without a reason", func(s *seen) { s.fates["sea/bad.nc"] = fate{} }, "not set aside with a reason"},
		{"no granule, and filled", func(s *seen) { s.fates["sea/bad.nc"] = fate{sha256: "x", done: true} }, "no granule"},
		{"no side file", func(s *seen) { s.bare = []string{"sea/a_l4.nc"} }, "side file"},
		{"a temporary file", func(s *seen) { s.left = []string{".put-7"} }, "left behind: .put-7"},
		{"a delivery waits", func(s *seen) { s.open = []string{"a delivery"} }, "not done"},
		{"descriptors leak", func(s *seen) { s.after.descriptors = 200 }, "200 descriptors"},
		{"goroutines leak", func(s *seen) { s.after.goroutines = 600 }, "600 goroutines"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sound()
			s.fates, s.objects = maps.Clone(s.fates), maps.Clone(s.objects)
			tt.plant(&s)
			wrong := check(s)
			if tt.want == "" && len(wrong) > 0 || tt.want != "" && !strings.Contains(strings.Join(wrong, "\n"), tt.want) {
				t.Errorf("check() = %q, want %q", wrong, tt.want)
			}
		})
	}
}

func TestCheckerSeesWhatASecondDaemonPublished(t *testing.T) {
	ours := claim{"ledger", "sea", "a.nc", 1, "a1", false}
	visible := claim{"bucket", "sea", "a.nc", 2, "a2", false}
	claims := []claim{ours, visible, {"file", "sea", "b.nc", 1, "b1", false}}
	for _, tt := range []struct {
		name   string
		theirs claim
		wrong  int
	}{
		{"what is to be seen", claim{"second", "sea", "a.nc", 2, "a2", false}, 1},
		{"what it made and nobody sees", claim{"second", "sea", "a.nc", 2, "other", false}, 0},
		{"a file that no place shows", claim{"second", "sea", "b.nc", 1, "b1", false}, 0},
	} {
		if wrong := checkStrange(claims, []claim{tt.theirs}); len(wrong) != tt.wrong {
			t.Errorf("%s: %q, want %d", tt.name, wrong, tt.wrong)
		}
	}
}
