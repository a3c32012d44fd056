package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	runtimelib "github.com/yalue/onnxruntime_go"

	"lacuna/pipeline/trusted"
)

// LibraryVariable names the environment variable that points at the ONNX
// Runtime library.
const LibraryVariable = "LACUNA_ONNXRUNTIME"

// minimumMinor is the oldest ONNX Runtime 1.x that offers the interface
// version that onnxruntime_go is built for.
const minimumMinor = 24

// installHint is the remedy at the end of every error about the library.
const installHint = "install onnxruntime 1.24 or newer where the system's loader finds it or beside the program, or name it with train.library or $" + LibraryVariable

// LibraryPath returns the ONNX Runtime library to load: configured if it is
// not empty, then $LACUNA_ONNXRUNTIME, then the library beside the running
// program, the one that was packed with it, in lib/lacuna beside its bin, or that
// in .cache/onnxruntime of the checkout in whose bin it lies, then the one in the
// folders of the system's loader. The working directory is not
// searched: whoever can write there would run code as this user. For the same
// reason a library that others may change is refused, wherever it lies; see
// package trusted.
//
// A library that is named and is missing or refused is an error. Elsewhere the
// search goes on, and if it finds nothing the error lists the refused files.
func LibraryPath(configured string) (string, error) {
	found, err := findLibrary(configured)
	return found.Path, err
}

// Library is the ONNX Runtime library that was found.
type Library struct {
	Path    string
	Refused []error // reasons why preferred libraries are not used
}

func findLibrary(configured string) (Library, error) {
	exe, _ := os.Executable() // without it the folder of the program is not searched
	s := search{configured: configured, variable: os.Getenv(LibraryVariable), exe: exe, system: systemFolders(), check: checkLibrary}
	return s.find()
}

// search describes the machine on which a library is searched for.
type search struct {
	configured, variable string   // named paths; empty: not set
	exe                  string   // the running program; empty: unknown
	system               []string // folders of the system's loader
	check                func(path string) (string, error)
}

func (s search) find() (Library, error) {
	if s.configured != "" {
		path, err := filepath.Abs(s.configured) // a typed path is relative to the working directory
		return s.named("the configuration", path, err)
	}
	if s.variable != "" {
		return s.named("$"+LibraryVariable, s.variable, nil)
	}
	beside := besideProgram(s.exe)
	var refused []error
	for _, path := range slices.Concat(beside, inFolders(s.system)) {
		found, err := s.check(path)
		if err == nil {
			return Library{Path: found, Refused: refused}, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			refused = append(refused, err)
		}
	}
	why := ""
	for _, err := range refused {
		why += err.Error() + "; "
	}
	return Library{}, fmt.Errorf("find the ONNX Runtime library: %slooked for %s and, in %s, for %s; %s", why,
		strings.Join(beside, ", "), strings.Join(s.system, ", "), strings.Join(libraryNames(), " or "), installHint)
}

// named checks a library that the configuration or the environment names.
func (s search) named(origin, path string, err error) (Library, error) {
	if err == nil {
		path, err = s.check(path)
	}
	if err != nil {
		return Library{}, fmt.Errorf("find the ONNX Runtime library named by %s: %w; %s", origin, err, installHint)
	}
	return Library{Path: path}, nil
}

// besideProgram lists the paths that need no installation: beside the running
// program and, where it lies in a bin, the lib/lacuna of packages and images and
// the cache of a checkout.
func besideProgram(exe string) []string {
	if exe == "" {
		return nil
	}
	folder, name := filepath.Dir(exe), libraryNames()[0]
	paths := []string{filepath.Join(folder, name)}
	if filepath.Base(folder) == "bin" {
		above := filepath.Dir(folder)
		paths = append(paths, filepath.Join(above, "lib", "lacuna", name), filepath.Join(above, ".cache", "onnxruntime", name))
	}
	return paths
}

// inFolders lists the possible paths of the library in folders.
func inFolders(folders []string) []string {
	var paths []string
	for _, folder := range folders {
		for _, name := range libraryNames() {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	return paths
}

// checkLibrary returns the path of the library without links. The runtime loads
// its execution providers and what they link from the same folder, so these are checked too.
func checkLibrary(path string) (string, error) {
	found, err := trusted.File(path)
	if err != nil {
		return "", err
	}
	for _, pattern := range []string{"libonnxruntime_providers_*", "libopenvino*", "libtbb*"} {
		beside, _ := filepath.Glob(filepath.Join(filepath.Dir(found), pattern)) // fails on a malformed pattern only
		for _, provider := range beside {
			if _, err := trusted.File(provider); err != nil {
				return "", err
			}
		}
	}
	return found, nil
}

// libraryNames returns the names of the library on this system, the plain
// name first.
func libraryNames() []string {
	if runtime.GOOS == "darwin" {
		return []string{"libonnxruntime.dylib"}
	}
	return []string{"libonnxruntime.so", "libonnxruntime.so.1"}
}

// environment is the process-wide state of ONNX Runtime, which is loaded once
// and stays loaded: two copies of the library in one process interfere.
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
	if err := silence(); err != nil {
		return nil, err
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

// silencers are the variables that keep ONNX Runtime from reporting on its use. The
// first is that of releases since 1.29, the second that of builds before it.
var silencers = []string{"ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"}

// silence keeps ONNX Runtime from reporting on its use. By itself it makes up an
// identifier of the machine, keeps it and a database of events in the user's cache and
// a file .ses in the folder of temporary files, and sends the events to its maker. It
// looks at the environment once, when it is started; the function of its interface
// that turns reports off comes too late for the first of them.
func silence() error {
	for _, name := range silencers {
		if err := os.Setenv(name, "1"); err != nil {
			return fmt.Errorf("keep ONNX Runtime from reporting on its use: %w", err)
		}
	}
	return nil
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
		return fmt.Errorf("version %q of the library cannot be parsed", version)
	}
	if a < 1 || a == 1 && b < minimumMinor {
		return fmt.Errorf("version %s: %w, 1.%d is needed", version, errTooOld, minimumMinor)
	}
	return nil
}
