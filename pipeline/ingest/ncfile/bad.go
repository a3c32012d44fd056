package ncfile

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A BadGranule says that a file cannot be used. Its message is one sentence
// that names the file, the problem and the remedy.
type BadGranule struct {
	File, Problem, Remedy string
}

// Error returns "FILE: PROBLEM; REMEDY".
func (e *BadGranule) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.File, e.Problem, e.Remedy)
}

// Bad returns a *BadGranule without the file's name, which whoever knows it adds.
func Bad(problem, remedy string) error {
	return &BadGranule{Problem: problem, Remedy: remedy}
}

// Again is the remedy for a file that arrived broken.
const Again = "download it again"

// maxListed is how many names a message can hold and still be read.
const maxListed = 12

// List joins names for a message.
func List(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "(none)"
	case n > maxListed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), n-maxListed)
	}
	return strings.Join(names, ", ")
}

// maxNameBytes is the longest name that Linux file systems allow.
const maxNameBytes = 255

// CheckName refuses names that no archive has a reason to use and that could
// mean something else to a shell, a terminal, a URL or netCDF-C than to the
// file system. The error is a *BadGranule.
func CheckName(name string) error {
	problem := nameProblem(name)
	if problem == "" {
		return nil
	}
	// Quoted, so that the message itself is harmless on a terminal.
	shown := fmt.Sprintf("%.80q", name)
	return &BadGranule{File: shown, Problem: problem, Remedy: "rename the file or leave it out of the archive"}
}

func nameProblem(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > maxNameBytes:
		return fmt.Sprintf("the name has %d bytes, more than %d", len(name), maxNameBytes)
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.ContainsAny(name, `/\`):
		return "the name has a slash or backslash"
	case name == "." || strings.Contains(name, ".."):
		return `the name has ".."`
	case strings.HasPrefix(name, "-"):
		return "the name begins with a dash"
	case !printable(name):
		return "the name has a control character"
	}
	return ""
}
