package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/publish"
)

// A mount goes away: below it is an empty folder, which looks like a new place.
func TestNothingIsStoredBelowAMountThatIsAway(t *testing.T) {
	root := filepath.Join(t.TempDir(), "products")
	s := Store{Root: root, Mark: new(publish.Mark)}
	me := publish.Owner{State: "me", Epoch: 1}
	put := func() error {
		_, err := s.Put(t.Context(), Item{Dataset: "sea", Granule: "a.nc", Name: "a_l4.nc", Revision: 1, Time: time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)},
			func(path string) error { return os.WriteFile(path, []byte("product"), 0o644) })
		return err
	}
	if owner, err := s.Owner(context.Background()); err != nil || owner.State != "" {
		t.Fatalf("Owner() of a new place = %v, %v", owner, err)
	}
	if err := errors.Join(s.Claim(t.Context(), me), put()); err != nil {
		t.Fatal(err)
	}
	away := root + ".away"
	if err := errors.Join(os.Rename(root, away), os.Mkdir(root, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := put(); !errors.Is(err, publish.ErrAway) {
		t.Errorf("Put() = %v, want ErrAway", err)
	}
	if _, err := NewSink(s).Owner(t.Context()); !errors.Is(err, publish.ErrAway) {
		t.Errorf("Owner() = %v, want ErrAway: nobody may mark it", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("the bare folder has %v, %v", left, err)
	}
	if err := errors.Join(os.Remove(root), os.Rename(away, root), put()); err != nil {
		t.Errorf("with the mount again: %v", err)
	}
}
