package intake

import (
	"testing"

	"lacuna/daemon/state"
	"lacuna/fetch"
)

// Every kind says everything about itself: its address is taken as its own, is
// good, has a place, can be proposed and opened.
func TestEveryKindOfArchiveIsWhole(t *testing.T) {
	for _, k := range kinds {
		a, err := At(k.example)
		if err != nil || a.Type != k.name {
			t.Errorf("%s is of type %q, %v; want %s", k.example, a.Type, err, k.name)
		}
		if err := a.Validate(); err != nil {
			t.Errorf("%s: %v", k.example, err)
		}
		if a.Place() == "" || len(a.Propose()) == 0 {
			t.Errorf("%s: place %q, proposed lines %v", k.example, a.Place(), a.Propose())
		}
		archive, err := a.bare(fetch.Politeness{}, state.Dir(t.TempDir()), "sea")
		if err != nil || archive == nil {
			t.Errorf("%s cannot be opened: %v", k.example, err)
		}
	}
}

func TestPlacesBecomeArchives(t *testing.T) {
	if a, err := At("s3://s3.example.org/b/p/q"); err != nil || a.S3.Bucket != "b" || a.S3.Prefix != "p/q" {
		t.Errorf("bucket %q, prefix %q, %v", a.S3.Bucket, a.S3.Prefix, err)
	}
	for _, bad := range []string{"s3://host", "gopher://host/x"} {
		if _, err := At(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
