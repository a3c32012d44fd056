package trusted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrUntrusted marks a file that others may change.
var ErrUntrusted = errors.New("others may change it")

// entry describes a file, folder or link on the way to a file.
type entry struct {
	mode     fs.FileMode
	uid, gid int
	acl      bool // has an access control list
}

// user is the user of this process.
type user struct {
	uid          int
	privateGroup int // group without other members; -1: none
}

// refusal returns the reason why others than root and u may change e; empty: they may not.
func (u user) refusal(e entry) string {
	const groupWrites, othersWrite = 0o020, 0o002
	switch {
	case e.uid != 0 && e.uid != u.uid:
		return fmt.Sprintf("belongs to user %d, who is neither root nor the user of this process (%d)", e.uid, u.uid)
	case e.mode&fs.ModeSymlink != 0:
		return "" // a link's mode has no meaning: the folder around it decides
	case e.mode.IsDir() && e.mode&fs.ModeSticky != 0:
		return "" // sticky: others may add files of their own only
	case e.mode&othersWrite != 0:
		return fmt.Sprintf("can be written by everybody (mode %v)", e.mode)
	case e.mode&groupWrites != 0 && (e.acl || e.gid != u.privateGroup):
		return fmt.Sprintf("can be written by group %d (mode %v)", e.gid, e.mode)
	}
	return ""
}

// File follows path to a regular file and returns its path without links, to be
// loaded or started from there. If others may change the file, or a folder or
// link on the way, the error wraps ErrUntrusted and names it and the remedy.
func File(path string) (string, error) {
	if _, err := os.Stat(path); err != nil && filepath.IsAbs(path) {
		return "", err // a missing file is reported as missing, not as untrusted
	}
	return follow(path, currentUser(), lstat)
}

// mostLinks is how many links a path may lead through, as in Linux.
const mostLinks = 40

// follow walks to path as the kernel does, and checks every step.
func follow(path string, u user, look func(string) (entry, error)) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s is not an absolute path: it would be another file in every folder", path)
	}
	at, left, links := "/", steps(path), 0
	for {
		e, err := look(at)
		if err != nil {
			return "", err
		}
		if why := u.refusal(e); why != "" {
			return "", fmt.Errorf("%s is not used: %s %s; %w: give it to root or to the user of this process (chown), "+
				"and take the right to write it from all others (chmod go-w)", path, at, why, ErrUntrusted)
		}
		if e.mode&fs.ModeSymlink != 0 {
			if links++; links > mostLinks {
				return "", fmt.Errorf("%s leads through more than %d links", path, mostLinks)
			}
			target, err := os.Readlink(at)
			if err != nil {
				return "", err
			}
			if at = filepath.Dir(at); filepath.IsAbs(target) {
				at = "/"
			}
			left = append(steps(target), left...)
		} else if len(left) == 0 {
			if !e.mode.IsRegular() {
				return "", fmt.Errorf("%s is not a file", path)
			}
			return at, nil
		}
		if len(left) == 0 {
			left = []string{"."} // a link to the root
		}
		at, left = filepath.Join(at, left[0]), left[1:] // at has no links, so .. is the folder above
	}
}

// steps returns the names on a path.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}
