package sandbox

// #include "landlock.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Mark is the variable of the environment that confines a process from its
// start, whatever its value.
const Mark = C.LACUNA_SANDBOX_MARK

// Template is the variable of the environment that makes a process a template,
// whatever its value. It does not come to main: it waits for messages of one byte
// on descriptor 3, each with four descriptors, makes a copy of itself for each of
// them and answers with its process id, or an error number below zero, in four
// bytes. The copy begins with main, has the descriptors as 0 to 3 and is a child of
// the template's parent. When the socket is closed the template ends.
const Template = C.LACUNA_SANDBOX_TEMPLATE

// State describes how a process is confined.
type State struct {
	Landlock int  `json:"landlock"` // version of the kernel's rules; 0: none
	Seccomp  bool `json:"seccomp"`  // whether system calls are limited
	// Operations that Probe was able to do nevertheless.
	Opens    bool `json:"opens"`    // open a file
	Connects bool `json:"connects"` // make a socket
	Starts   bool `json:"starts"`   // start another process
	// Carried says that the process is the small decoder that the program carries, and
	// not the program once more; its parent knows.
	Carried bool
}

// Tight reports whether both layers hold and Probe found no way out.
func (s State) Tight() bool {
	return s.Landlock > 0 && s.Seccomp && !s.Opens && !s.Connects && !s.Starts
}

// String says in words which layers hold, which are missing and which operations are possible.
func (s State) String() string {
	var have, lack, open []string
	sort := func(ok bool, name string) {
		if ok {
			have = append(have, name)
		} else {
			lack = append(lack, name)
		}
	}
	sort(s.Landlock > 0, "Landlock")
	sort(s.Seccomp, "seccomp")
	for _, way := range []struct {
		open bool
		what string
	}{{s.Opens, "open files"}, {s.Connects, "make sockets"}, {s.Starts, "start processes"}} {
		if way.open {
			open = append(open, way.what)
		}
	}
	text := "confined by " + strings.Join(have, " and ")
	if len(have) == 0 {
		text = "not confined"
	}
	if s.Carried {
		text += ", in a program of its own"
	}
	if len(lack) > 0 {
		text += "; this kernel gives no " + strings.Join(lack, " and no ")
	}
	if len(open) > 0 {
		text += "; it could " + strings.Join(open, ", ")
	}
	return text
}

// Restrict limits this process to the system calls of Filter, on all of its
// threads, for good. It returns how the process is confined then: a kernel
// that has no such limits is no error.
func Restrict() (State, error) {
	s := State{Landlock: int(C.lacuna_landlock_version())}
	switch err := install(Filter(os.Getpid())); {
	case err == nil:
		s.Seccomp = true
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL):
		// Not built into this kernel.
	default:
		return s, fmt.Errorf("limit system calls: %w", err)
	}
	return s, nil
}

// Probe tries the operations that a hostile file would need, and records in s
// which of them worked.
func (s State) Probe() State {
	if fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		s.Opens = true
		_ = unix.Close(fd)
	}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
		s.Connects = true
		_ = unix.Close(fd)
	}
	// No such program exists, so nothing starts even where starting is allowed.
	// A filter answers before the kernel looks for the program.
	if err := unix.Exec("/nowhere/nothing", []string{"nothing"}, nil); !errors.Is(err, unix.EPERM) {
		s.Starts = true
	}
	return s
}
