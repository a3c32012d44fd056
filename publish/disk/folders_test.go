package disk

import (
	"strings"
	"testing"

	"lacuna/publish"
)

// A tree whose template is changed would show a product twice: the revision in the
// new folder, and the one before in the old.
func TestAnotherTemplateIsRefusedOnceThereAreProducts(t *testing.T) {
	s := Store{Root: t.TempDir(), Folders: "{year}/{doy}"}
	if err := s.CheckFolders(); err != nil {
		t.Fatalf("an empty tree has folders: %v", err)
	}
	stored := put(t, s, item(1), "one")
	if err := NewSink(s).Publish(t.Context(), product(s, stored, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckFolders(); err != nil {
		t.Error(err)
	}
	for _, other := range []publish.Folders{"", "{year}", "{year}/{month}/{day}"} {
		s.Folders = other
		if err := s.CheckFolders(); err == nil || !strings.Contains(err.Error(), "set it back") {
			t.Errorf("%q is taken where products lie in others: %v", other, err)
		}
	}
}
