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
