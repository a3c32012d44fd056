package ops

import (
	"os"
	"os/exec"
)

// Machine finds programs and secrets of the machine. The functions of the
// daemon refuse files that other users may change or read; the zero value
// accepts all.
type Machine struct {
	// Program returns the path of a program by its name or path.
	Program func(name string) (path string, err error)
	// Secret returns the content of a file, without the white space at its end.
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
