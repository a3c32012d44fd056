package trusted

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program finds a program on $PATH, or takes the one that an absolute path
// names, and returns its path. A program that depends on the working directory,
// by a relative name or a relative folder on $PATH, is refused, and so is one
// that others may change. Links in the path are kept: a program may ask by which
// name it was called.
func Program(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		return "", fmt.Errorf("%s is not an absolute path: it would be another program in every folder", name)
	}
	path, err := exec.LookPath(name)
	if err != nil { // also exec.ErrDot, for a relative folder on $PATH
		return "", err
	}
	if _, err := File(path); err != nil {
		return "", err
	}
	return path, nil
}

// lstat describes the entry at path, without following a link.
func lstat(path string) (entry, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return entry{}, err
	}
	e := entry{mode: info.Mode()}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		e.uid, e.gid = int(owner.Uid), int(owner.Gid)
	}
	size, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	e.acl = err == nil && size > 0
	return e, nil
}

// currentUser is the user of this process, which stays the same while it runs.
var currentUser = sync.OnceValue(func() user {
	u := user{uid: os.Geteuid(), privateGroup: -1}
	passwd, err1 := os.ReadFile("/etc/passwd")
	group, err2 := os.ReadFile("/etc/group")
	if gid := os.Getegid(); err1 == nil && err2 == nil && isPrivate(u.uid, gid, string(passwd), string(group)) {
		u.privateGroup = gid
	}
	return u
})

// isPrivate reports whether nobody but uid is in group gid, by the text of
// /etc/passwd and /etc/group.
func isPrivate(uid, gid int, passwd, group string) bool {
	name := ""
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSpace(line), ":")
		switch {
		case len(f) < 4 || f[3] != strconv.Itoa(gid):
		case f[2] == strconv.Itoa(uid):
			name = f[0]
		default:
			return false
		}
	}
	for line := range strings.Lines(group) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 4 && f[2] == strconv.Itoa(gid) {
			return name != "" && (f[3] == "" || f[3] == name)
		}
	}
	return false
}
