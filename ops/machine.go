package ops

import (
	"os"
	"os/exec"
)

// Machine is how programs and secrets of the machine are found. The daemon
// lends functions that refuse what other users may change or read; the zero
// value takes everything as it is.
type Machine struct {
	// Program returns the path of a program by its name or path.
	Program func(name string) (path string, err error)
	// Secret returns what is in a file, without the white space at its end.
	Secret func(path string) (text string, err error)
}

func (m Machine) program(name string) (string, error) {
	if m.Program == nil {
		return exec.LookPath(name)
	}
	return m.Program(name)
}

func (m Machine) secret(path string) (string, error) {
	if m.Secret == nil {
		text, err := os.ReadFile(path)
		return string(text), err
	}
	return m.Secret(path)
}
