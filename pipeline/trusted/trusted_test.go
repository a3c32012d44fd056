package trusted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyRootAndTheUserMayChangeATrustedFile(t *testing.T) {
	const me, other, mine, shared = 1000, 1001, 1000, 50
	for _, c := range []struct {
		name string
		e    entry
		want string // part of the refusal; empty: it is trusted
	}{
		{"root's", entry{mode: 0o755, uid: 0, gid: 0}, ""},
		{"the user's own", entry{mode: 0o700, uid: me, gid: mine}, ""},
		{"somebody else's", entry{mode: 0o755, uid: other, gid: mine}, "belongs to user 1001"},
		{"writable by all", entry{mode: 0o757, uid: 0, gid: 0}, "everybody"},
		{"an open folder", entry{mode: fs.ModeDir | 0o777, uid: 0, gid: 0}, "everybody"},
		{"the same with the sticky bit", entry{mode: fs.ModeDir | fs.ModeSticky | 0o777, uid: 0, gid: 0}, ""},
		{"a sticky folder of somebody else", entry{mode: fs.ModeDir | fs.ModeSticky | 0o777, uid: other, gid: 0}, "belongs to user 1001"},
		{"a sticky file", entry{mode: fs.ModeSticky | 0o777, uid: 0, gid: 0}, "everybody"},
		{"writable by a shared group", entry{mode: 0o775, uid: 0, gid: shared}, "group 50"},
		{"writable by root's group", entry{mode: 0o775, uid: 0, gid: 0}, "group 0"},
		{"writable by the private group, umask 002", entry{mode: 0o775, uid: me, gid: mine}, ""},
		{"the same with an access control list", entry{mode: 0o775, uid: me, gid: mine, acl: true}, "group 1000"},
		{"a link of the user", entry{mode: fs.ModeSymlink | 0o777, uid: me, gid: mine}, ""},
		{"a link of somebody else", entry{mode: fs.ModeSymlink | 0o777, uid: other, gid: mine}, "belongs to user 1001"},
	} {
		got := user{uid: me, privateGroup: mine}.refusal(c.e)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := (user{uid: me, privateGroup: -1}).refusal(entry{mode: 0o775, uid: me, gid: mine}); got == "" {
		t.Error("a group that is not private may write")
	}
}

func TestAGroupIsPrivateWhereNobodyElseIsInIt(t *testing.T) {
	const passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nben:x:1001:1000::/home/ben:/bin/sh\ncy:x:1002:1002::/home/cy:/bin/sh\ndi:x:1003:1003::/home/di:/bin/sh\n"
	const group = "root:x:0:\nann:x:1000:\ncy:x:1002:cy\ndi:x:1003:cy\n"
	for _, c := range []struct {
		name     string
		uid, gid int
		want     bool
	}{
		{"only the user", 1002, 1002, true},
		{"root alone", 0, 0, true},
		{"another user's primary group too", 1000, 1000, false},
		{"another member", 1003, 1003, false},
		{"a group that is not listed", 1002, 7, false},
		{"a user who is not listed", 61184, 61184, false},
	} {
		if got := isPrivate(c.uid, c.gid, passwd, group); got != c.want {
			t.Errorf("%s: private = %v, want %v", c.name, got, c.want)
		}
	}
}

// tree makes folders and a file.
func tree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "b", "lib.so"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := File(filepath.Join(root, "a", "b", "lib.so")); errors.Is(err, ErrUntrusted) {
		t.Skipf("others may write the folder for temporary files: %v", err)
	}
	return root
}

func TestAFileIsRefusedForEveryFolderAboveItAndEveryLinkToIt(t *testing.T) {
	root := tree(t)
	file := filepath.Join(root, "a", "b", "lib.so")
	link := filepath.Join(root, "link.so")
	if err := os.Symlink(filepath.Join("a", ".", "b", "..", "b", "lib.so"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if got, err := File(path); err != nil || got != file {
			t.Errorf("File(%s) = %q, %v, want %q", path, got, err, file)
		}
	}
	for _, spoilt := range []string{file, filepath.Dir(file), filepath.Join(root, "a"), root} {
		info, err := os.Stat(spoilt)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(spoilt, 0o757); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, link} {
			if _, err := File(path); !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), spoilt+" can be written by everybody") {
				t.Errorf("%s where %s is everybody's: %v", path, spoilt, err)
			}
		}
		if err := os.Chmod(spoilt, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	open := filepath.Join(root, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	swappable := filepath.Join(open, "lib.so")
	if err := os.Symlink(file, swappable); err != nil {
		t.Fatal(err)
	}
	if _, err := File(swappable); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a link that everybody can point elsewhere: %v", err)
	}
}

func TestAPathToNoFileIsAnErrorAndNotFollowedForEver(t *testing.T) {
	root := tree(t)
	circle := filepath.Join(root, "circle")
	if err := os.Symlink("circle", circle); err != nil {
		t.Fatal(err)
	}
	slash := filepath.Join(root, "slash")
	if err := os.Symlink("/", slash); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		circle: "links", filepath.Join(os.TempDir(), "none", "lib.so"): "no such file", filepath.Join(root, "a"): "not a file", slash: "not a file", filepath.Join(root, "none"): "no such file", "a/b/lib.so": "not an absolute path",
	} {
		if _, err := File(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("File(%s) = %v, want %q", path, err, want)
		}
	}
}

func TestAProgramThatDependsOnTheWorkingDirectoryIsRefused(t *testing.T) {
	root := tree(t)
	program := filepath.Join(root, "a", "tool")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "a"))
	t.Setenv("PATH", filepath.Join(root, "a"))
	for _, name := range []string{"tool", program} {
		if got, err := Program(name); err != nil || got != program {
			t.Errorf("Program(%s) = %q, %v, want %q", name, got, err, program)
		}
	}
	for path, name := range map[string]string{".": "tool", "": "tool", filepath.Join(root, "a"): "./tool"} {
		t.Setenv("PATH", path)
		if got, err := Program(name); err == nil {
			t.Errorf("with PATH=%q the program %s is %s", path, name, got)
		}
	}
	t.Setenv("PATH", filepath.Join(root, "a"))
	if err := os.Chmod(program, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Program("tool"); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a program that everybody may write: %v", err)
	}
}
