package modelstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readAndTryToWrite is run on a read-only file system.
func readAndTryToWrite(s *Store) error {
	serving, err := s.LoadChampion("blk-chl")
	if err != nil {
		return err
	}
	fmt.Println("serves", serving.Version.ID)
	_, writeErr := s.Write(context.Background(), testCard("x"), testFiles("x"))
	_, promoteErr := s.Promote(context.Background(), Change{Version: serving.Version.ID})
	fmt.Println("write:", writeErr)
	fmt.Println("promote:", promoteErr)
	return nil
}

func TestStoreOnAReadOnlyFileSystemServesAndSaysWhyItCannotBeWritten(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "one")
	promote(t, s, v)
	text := runMounted(t, "reader", s.dir, `mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"`)
	if !strings.Contains(text, "serves "+v.ID) {
		t.Errorf("the champion does not serve: %s", text)
	}
	if strings.Count(text, "read-only file system: models can be loaded") != 2 {
		t.Errorf("messages do not name the cause: %s", text)
	}
}

// fillTheDisk is run on a small file system: it promotes until that is full,
// then makes room.
func fillTheDisk(s *Store) error {
	ctx := context.Background()
	last := ""
	for i := 0; ; i++ {
		note := fmt.Sprint("number ", i)
		v, err := s.Write(ctx, testCard(note), testFiles(strings.Repeat(note, 20)))
		if err != nil {
			fmt.Println("full:", err)
			break
		}
		if _, err := s.PromoteOver(ctx, last, Change{Version: v.ID, By: "test"}); err != nil {
			fmt.Println("full:", err)
			break
		}
		if _, _, err := s.Rollback(ctx, "blk-chl", "test", "make garbage"); i > 0 && err != nil {
			return err
		}
		e, err := s.Champion("blk-chl")
		if err != nil {
			return err
		}
		last = e.Version
	}
	serving, err := s.LoadChampion("blk-chl")
	if err != nil || len(serving.Problems) > 0 {
		return errors.Join(append(serving.Problems, err)...)
	}
	fmt.Println("still serves", serving.Version.ID == last)
	sweep, err := s.GC(ctx, Retention{}, false)
	if err != nil {
		return err
	}
	v, err := s.Write(ctx, testCard("after"), testFiles("after"))
	if err != nil {
		return err
	}
	_, err = s.Promote(ctx, Change{Version: v.ID})
	fmt.Println("room again", len(sweep.Removed) > 0 && err == nil)
	return err
}

func TestFullDiskLosesNothingAndCollectionMakesRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, folderMode); err != nil {
		t.Fatal(err)
	}
	text := runMounted(t, "crowded", dir, `mount -t tmpfs -o size=2m tmpfs "$1"`)
	for _, want := range []string{"file system that is full; 'lacuna models gc'", "still serves true", "room again true"} {
		if !strings.Contains(text, want) {
			t.Errorf("the child said\n%s\nwant %q", text, want)
		}
	}
}

// runMounted plays a role in a name space in which the shell command mount has
// changed the file system that holds dir ($1), and returns its output.
func runMounted(t *testing.T, role, dir, mount string) string {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("there is no unshare (util-linux) to make a file system of its own with")
	}
	c := child(t, role, dir)
	c.Path, c.Args = unshare, []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount + ` && echo mounted && exec "$2"`, "sh", dir, os.Args[0]}
	out, err := c.CombinedOutput()
	if !strings.HasPrefix(string(out), "mounted") {
		t.Skipf("no file system can be mounted here: %s", out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestMessagesOfTheFileSystemNameTheRemedy(t *testing.T) {
	s := newStore(t)
	if err := os.MkdirAll(filepath.Dir(s.dir), folderMode); err != nil {
		t.Fatal(err)
	}
	denied := s.explain(&fs.PathError{Op: "open", Path: s.dir, Err: fs.ErrPermission})
	if !errors.Is(denied, fs.ErrPermission) || !strings.Contains(denied.Error(), "the user that owns it") {
		t.Errorf("permission denied reads %q", denied)
	}
	if err := os.WriteFile(s.dir, nil, fileMode); err != nil { // a file where the store should be
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), testCard("x"), testFiles("x")); err == nil || !strings.Contains(err.Error(), s.dir) {
		t.Errorf("Write() = %v, want an error with the path", err)
	}
}
