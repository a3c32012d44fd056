package zarr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/publish"
)

func publishAll(t testing.TB, s *Sink, products ...publish.Product) {
	t.Helper()
	for _, p := range products {
		if err := s.Publish(context.Background(), p); err != nil {
			t.Fatalf("Publish(%s) = %v", p.ID(), err)
		}
	}
}

// snapshot returns the hash of every object of a folder that readers can see.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		sum := sha256.Sum256(content)
		key, _ := filepath.Rel(root, path)
		if !strings.HasPrefix(key, ".pending") && !strings.HasPrefix(key, staging) {
			all[key] = hex.EncodeToString(sum[:])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDaysComeInAnyOrderAndAreRevised(t *testing.T) {
	dir, small := t.TempDir(), sea{9, 7}
	s := InFolder(dir)
	want := map[int]publish.Product{}
	for _, step := range []struct{ day, revision int }{
		{10, 1}, {11, 1}, {13, 1}, {11, 2}, {12, 1}, // 13 leaves a slot for 12
		{4, 1}, {3, 1}, {6, 1}, {5, 1}, {13, 2}, // 4 and 3 move the others
	} {
		p := small.product(t, step.day, step.revision)
		publishAll(t, InFolder(dir), p, p) // again, by another process
		want[step.day] = p
	}
	slots := readStore(t, s.objects, "sea")
	if len(slots) != 11 {
		t.Fatalf("%d slots, want those of days 3 to 13", len(slots))
	}
	for i, got := range slots {
		p, ok := want[3+i]
		switch {
		case ok:
			wantMaps(t, got, p)
		case !got.empty() || got.revision != 0 || got.granule != "" || !got.at.Equal(firstDay.AddDate(0, 0, 3+i)):
			t.Errorf("slot of day %d without a product is %v, revision %d of %q", 3+i, got.at, got.revision, got.granule)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, ".shift")); err == nil && len(left) > 0 {
		t.Errorf("%v is left of the moves", left)
	}
}

func TestAnotherGridIsRefusedAndNothingChanges(t *testing.T) {
	dir := t.TempDir()
	s := InFolder(dir)
	publishAll(t, s, sea{9, 7}.product(t, 0, 1))
	before := snapshot(t, dir)
	wide, shifted := sea{9, 8}.product(t, 1, 1), sea{9, 7}.product(t, 1, 1)
	if err := s.Publish(t.Context(), wide); !errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), "replay") {
		t.Errorf("Publish() = %v of a wider grid, want a permanent error with a remedy", err)
	}
	if err := s.Publish(t.Context(), shifted); err != nil {
		t.Errorf("Publish() = %v of the same grid", err)
	}
	after := snapshot(t, dir)
	if len(after) <= len(before) {
		t.Errorf("%d objects after the second day, %d before", len(after), len(before))
	}
}

func TestAFolderAndABucketHoldTheSameBytes(t *testing.T) {
	dir, small := t.TempDir(), sea{9, 7}
	folder, bucket := InFolder(dir), inBucket(t)
	var all []publish.Product
	for _, day := range []int{5, 6, 2, 7} {
		all = append(all, small.product(t, day, 1))
	}
	all = append(all, small.product(t, 6, 2))
	publishAll(t, folder, all...)
	publishAll(t, bucket, all...)
	gone := all[3]
	gone.Retracted, gone.Why = true, "sensor fault"
	for _, s := range []*Sink{folder, bucket} {
		if err := s.Retract(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	want, got := snapshot(t, dir), bucketSnapshot(t, bucket)
	for key, sum := range want {
		if got[key] != sum {
			t.Errorf("%s is %q in the bucket, %q in the folder", key, got[key], sum)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d objects in the bucket, %d in the folder", len(got), len(want))
	}
}

// A ledger that was made anew may not know the variable of a product.
func TestAProductOfAnUnknownVariableIsShownAndRetracted(t *testing.T) {
	s := InFolder(t.TempDir())
	p := sea{9, 7}.product(t, 0, 1)
	p.Variable = ""
	publishAll(t, s, p)
	wantMaps(t, readStore(t, s.objects, "sea")[0], p)
	p.Retracted, p.Why = true, "sensor fault"
	if err := s.Retract(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if left := readStore(t, s.objects, "sea")[0]; !left.empty() || left.revision != 0 {
		t.Errorf("after the retraction revision %d is shown", left.revision)
	}
}
