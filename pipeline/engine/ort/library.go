package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	runtimelib "github.com/yalue/onnxruntime_go"
)

// libraryVariable names the environment variable that points at the ONNX
// Runtime library.
const libraryVariable = "LACUNA_ONNXRUNTIME"

// minimumMinor is the oldest ONNX Runtime 1.x that offers the interface
// version that onnxruntime_go is built for.
const minimumMinor = 24

// installHint ends every error about the library with what to do.
const installHint = "install onnxruntime 1.24 or newer, or set engine.library or $" + libraryVariable + " to libonnxruntime.so"

// LibraryPath returns the ONNX Runtime library to load: configured if it is
// not empty, then $LACUNA_ONNXRUNTIME, then the library beside the running
// binary or in .cache/onnxruntime of the checkout that it was built in, then
// .cache/onnxruntime in the working directory or a folder above it, then whatever the system's loader finds. A path that was asked for by
// name and does not exist is an error; so is finding nothing.
func LibraryPath(configured string) (string, error) {
	named := []struct{ origin, path string }{
		{"the configuration", configured},
		{"$" + libraryVariable, os.Getenv(libraryVariable)},
	}
	for _, n := range named {
		if n.path == "" {
			continue
		}
		if _, err := os.Stat(n.path); err != nil {
			return "", fmt.Errorf("find the ONNX Runtime library named by %s: %w; %s", n.origin, err, installHint)
		}
		return n.path, nil
	}
	exe, _ := os.Executable() // either is looked beside only if it is known
	dir, _ := os.Getwd()
	looked := besideBinaryAndCheckout(exe, dir)
	for _, path := range looked {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	system := libraryNames()
	for _, name := range system {
		if loadable(name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("find the ONNX Runtime library: looked for %s and asked the system for %s; %s",
		strings.Join(looked, ", "), strings.Join(system, ", "), installHint)
}

// besideBinaryAndCheckout lists the paths that need no installation: beside the
// running binary, in the checkout whose bin it lies in, and in dir or above it.
func besideBinaryAndCheckout(exe, dir string) []string {
	var paths []string
	name, kept := libraryNames()[0], filepath.Join(".cache", "onnxruntime")
	if exe != "" {
		beside := filepath.Dir(exe)
		paths = append(paths, filepath.Join(beside, name), filepath.Join(filepath.Dir(beside), kept, name))
	}
	for dir != "" {
		paths = append(paths, filepath.Join(dir, kept, name))
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	return paths
}

// libraryNames returns what the library is called on this system, the plain
// name first.
func libraryNames() []string {
	if runtime.GOOS == "darwin" {
		return []string{"libonnxruntime.dylib"}
	}
	return []string{"libonnxruntime.so", "libonnxruntime.so.1"}
}

// environment is the process-wide state of ONNX Runtime, which is loaded once
// and stays loaded: two copies of the library in one process do not get along.
type environment struct {
	mu        sync.Mutex
	path      string
	providers []string
}

// loaded is the one environment of this process. Its fields are written under
// its lock, once.
var loaded environment

// load loads the library at path, or does nothing if it is loaded already.
func (e *environment) load(path string) (providers []string, err error) {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.path != "" {
		if e.path != path {
			return nil, fmt.Errorf("load %s: this process already runs ONNX Runtime from %s, and can load it only once", path, e.path)
		}
		return e.providers, nil
	}
	found, err := inspectLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("load ONNX Runtime from %s: %w; %s", path, err, installHint)
	}
	if err := checkVersion(found.version); err != nil {
		return nil, fmt.Errorf("load ONNX Runtime from %s: %w; %s", path, err, installHint)
	}
	runtimelib.SetSharedLibraryPath(path)
	// Warnings of the runtime's optimizer are about graphs, not about data,
	// and would go to stderr past the daemon's log.
	if err := runtimelib.InitializeEnvironment(runtimelib.WithLogLevelError()); err != nil {
		return nil, fmt.Errorf("start ONNX Runtime from %s: %w; %s", path, err, installHint)
	}
	e.path, e.providers = path, found.providers
	return e.providers, nil
}

// errTooOld marks a library that lacks the interface needed here.
var errTooOld = errors.New("the library is too old")

// checkVersion accepts 1.24 and later.
func checkVersion(version string) error {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return fmt.Errorf("version %q of the library is not understood", version)
	}
	if a < 1 || a == 1 && b < minimumMinor {
		return fmt.Errorf("version %s: %w, 1.%d is needed", version, errTooOld, minimumMinor)
	}
	return nil
}
