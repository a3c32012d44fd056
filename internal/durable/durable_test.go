package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"lacuna/internal/durable"
)

func TestSyncTakesFilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, dir} {
		if err := durable.Sync(path); err != nil {
			t.Errorf("Sync(%s) = %v", path, err)
		}
	}
	if err := durable.Sync(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sync of what is not there = %v, want ErrNotExist", err)
	}
}

func TestFoldersAreMadeOnceAndNotOverFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := durable.MakeFolders(dir); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("no folder was made: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := durable.MakeFolders(filepath.Join(file, "d")); err == nil {
		t.Error("a folder was made in a file")
	}
}

// What is written at a moment, and left by a process that is killed then, lies beside its
// target and nowhere else.
func TestAnUnfinishedFileLiesBesideItsTarget(t *testing.T) {
	temporary, dir := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	path := filepath.Join(dir, "note")
	f, err := durable.Pending(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(f.Name()) != dir {
		t.Errorf("the unfinished file is %s", f.Name())
	}
	if err := errors.Join(f.CloseAtomicallyReplace(), durable.WriteFile(path, []byte("second"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); string(content) != "second" || err != nil {
		t.Errorf("the file has %q, %v", content, err)
	}
	for folder, want := range map[string]int{temporary: 0, dir: 1} {
		if left, err := os.ReadDir(folder); len(left) != want || err != nil {
			t.Errorf("%s has %v, %v", folder, left, err)
		}
	}
}
