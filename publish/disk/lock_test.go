package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAFolderThatCouldNotBeLockedIsLockedBeforeItIsUsed(t *testing.T) {
	top := t.TempDir()
	disk, root := filepath.Join(top, "disk"), filepath.Join(top, "disk", "products")
	if err := os.WriteFile(disk, nil, 0o644); err != nil { // no folder can be made there
		t.Fatal(err)
	}
	first := Store{Root: root, Hold: new(Hold)}
	unlock, err := first.Lock()
	if err == nil || unlock == nil {
		t.Fatalf("Lock() of a disk that fails = %v, %v", unlock != nil, err)
	}
	if err := errors.Join(os.Remove(disk), os.MkdirAll(root, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Owner(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := Store{Root: root, Hold: new(Hold)}
	if _, err := second.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock() of another daemon = %v, want ErrLocked", err)
	}
	if _, err := second.Owner(t.Context()); err != nil {
		t.Errorf("one that was refused waits for the lock: %v", err)
	}

	if err := errors.Join(os.Rename(root, root+".before"), os.Mkdir(root, 0o755)); err != nil { // a disk is mounted
		t.Fatal(err)
	}
	if _, err := first.Owner(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock() of the folder that came in the place of the first = %v, want ErrLocked", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := second.Lock()
	if err != nil {
		t.Fatalf("Lock() when the other has ended = %v", err)
	}
	if err := tryPut(t, first, "a.nc"); err != nil {
		t.Errorf("a store that was unlocked waits for the lock: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

func TestNothingIsStoredInAFolderThatAnotherHasLocked(t *testing.T) {
	root := filepath.Join(t.TempDir(), "products")
	first, late := Store{Root: root, Hold: new(Hold)}, Store{Root: root, Hold: &Hold{wanted: true}} // its disk failed when it began
	unlock, err := first.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := tryPut(t, late, "a.nc"); !errors.Is(err, ErrLocked) {
		t.Errorf("Put() = %v, want ErrLocked", err)
	}
	if err := errors.Join(unlock(), tryPut(t, late, "a.nc")); err != nil {
		t.Errorf("Put() when the other has ended = %v", err)
	}
}

func tryPut(t *testing.T, s Store, granule string) error {
	t.Helper()
	_, err := s.Put(t.Context(), Item{Dataset: "sea", Granule: granule, Name: granule, Revision: 1},
		func(path string) error { return os.WriteFile(path, []byte("product"), 0o644) })
	return err
}
