package powercut

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// record returns the log of what do does in a folder.
func record(t *testing.T, do func(folder string, d *Disk) error) *Log {
	t.Helper()
	folder := t.TempDir()
	d, err := Mount(folder)
	if err != nil {
		t.Skipf("a disk cannot be mounted here, which needs /dev/fuse and root or fusermount3: %v", err)
	}
	err = do(folder, d)
	log, gone := d.Unmount()
	if err := errors.Join(err, gone); err != nil {
		t.Fatal(err)
	}
	return log
}

// on returns the files of an image with their content.
func on(t *testing.T, i *Image) map[string]string {
	t.Helper()
	folder, files := t.TempDir(), map[string]string{}
	if err := i.WriteTo(folder); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		rel, _ := filepath.Rel(folder, path)
		files[rel] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// outcomes returns every content, or "gone", that a file may have after a cut at
// the end.
func outcomes(t *testing.T, l *Log, file string) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for _, fate := range Fates() {
		for seed := range uint64(30) {
			content, there := on(t, l.Image(Cut{At: l.Len(), Fate: fate, Seed: seed}))[file]
			if !there {
				content = "gone"
			}
			seen[content] = true
		}
	}
	return seen
}

func TestOnlyWhatWasSyncedLasts(t *testing.T) {
	replace := func(syncFile, syncFolder bool) func(string, *Disk) error {
		return func(folder string, _ *Disk) error {
			old, next := filepath.Join(folder, "a"), filepath.Join(folder, ".next")
			errs := []error{os.WriteFile(old, []byte("old"), 0o600), syncPath(old), syncPath(folder), os.WriteFile(next, []byte("new"), 0o600)}
			if syncFile {
				errs = append(errs, syncPath(next))
			}
			errs = append(errs, os.Rename(next, old))
			if syncFolder {
				errs = append(errs, syncPath(folder))
			}
			return errors.Join(errs...)
		}
	}
	tests := []struct {
		name               string
		file, folder       bool
		want, never, maybe string
	}{
		{name: "file and folder synced", file: true, folder: true, want: "new", never: "old"},
		{name: "folder not synced", file: true, want: "new", maybe: "old", never: ""},
		{name: "renamed before it was synced", folder: true, want: "new", maybe: "", never: "old"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seen := outcomes(t, record(t, replace(tt.file, tt.folder)), "a")
			if !seen[tt.want] || seen[tt.never] || seen["gone"] {
				t.Errorf("the file may be %v", seen)
			}
			if _, set := seen[tt.maybe]; !set && (!tt.file || !tt.folder) {
				t.Errorf("the file is never %q: %v", tt.maybe, seen)
			}
		})
	}
}

// A folder that was made and synced is gone with all in it, where the folder
// above was not synced.
func TestAFolderLastsWhenTheOneAboveWasSynced(t *testing.T) {
	make := func(above bool) *Log {
		return record(t, func(folder string, _ *Disk) error {
			dir, file := filepath.Join(folder, "d"), filepath.Join(folder, "d", "a")
			errs := []error{os.Mkdir(dir, 0o755), os.WriteFile(file, []byte("a"), 0o600), syncPath(file), syncPath(dir)}
			if above {
				errs = append(errs, syncPath(folder))
			}
			return errors.Join(errs...)
		})
	}
	if seen := outcomes(t, make(false), "d/a"); !seen["gone"] || !seen["a"] {
		t.Errorf("without the folder above: %v", seen)
	}
	if seen := outcomes(t, make(true), "d/a"); seen["gone"] {
		t.Errorf("with the folder above: %v", seen)
	}
}

func TestAWriteIsTornAtPagesOnly(t *testing.T) {
	log := record(t, func(folder string, _ *Disk) error {
		path := filepath.Join(folder, "a")
		return errors.Join(os.WriteFile(path, nil, 0o600), syncPath(folder), os.WriteFile(path, []byte(strings.Repeat("x", 3*pageBytes)), 0o600))
	})
	for content := range outcomes(t, log, "a") {
		for page := 0; page < len(content); page += pageBytes {
			if got := content[page:min(page+pageBytes, len(content))]; got != strings.Repeat("x", pageBytes) && got != strings.Repeat("\x00", pageBytes) {
				t.Fatalf("page %d is torn: %q", page/pageBytes, got[:20])
			}
		}
	}
	if n := len(outcomes(t, log, "a")); n < 5 {
		t.Errorf("only %d outcomes of a write of three pages", n)
	}
}

func TestTheDiskHoldsWhatWasDone(t *testing.T) {
	log := record(t, func(folder string, d *Disk) error {
		in := func(name string) string { return filepath.Join(folder, name) }
		errs := []error{os.MkdirAll(in("d/e"), 0o755), os.WriteFile(in("d/a"), []byte("hello"), 0o600), os.Link(in("d/a"), in("b")), os.Symlink("d/a", in("s")), os.WriteFile(in("c"), nil, 0o600)}
		f, err := os.OpenFile(in("b"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(" world")
		d.Mark("written")
		return errors.Join(append(errs, err, f.Close(), os.Remove(in("c")), os.Remove(in("d/e")), os.Chmod(in("b"), 0o444), os.Truncate(in("d/a"), 9))...)
	})
	files := on(t, log.Image(Cut{At: log.Len(), Fate: Landed}))
	if len(files) != 3 || files["b"] != "hello wor" || files["d/a"] != "hello wor" || files["s"] != "hello wor" {
		t.Errorf("the disk holds %q", files)
	}
	if notes := log.Marks(log.Len()); len(notes) != 1 || notes[0] != "written" || len(log.Marks(3)) != 0 {
		t.Errorf("marks are %v", notes)
	}
}

func TestALogWithoutASyncIsThatOfAProgramWithoutIt(t *testing.T) {
	log := record(t, func(folder string, _ *Disk) error {
		path := filepath.Join(folder, "a")
		return errors.Join(os.WriteFile(path, []byte("a"), 0o600), syncPath(path), syncPath(folder))
	})
	if seen := outcomes(t, log, "a"); len(seen) != 1 {
		t.Errorf("a synced file may be %v", seen)
	}
	less, err := log.Without(func(path string, folder bool) bool { return path == "a" && !folder })
	if err != nil {
		t.Fatal(err)
	}
	if seen := outcomes(t, less, "a"); !seen[""] || !seen["a"] || seen["gone"] {
		t.Errorf("a file that was not synced may be %v", seen)
	}
	if _, err := log.Without(func(string, bool) bool { return false }); err == nil {
		t.Error("a sync that is not there was left out")
	}
}
