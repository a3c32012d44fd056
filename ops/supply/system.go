package supply

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Loaded returns the shared libraries that the files load, by themselves or for
// one another, and the dynamic linker, in the order of their paths. One that is
// not found is an error.
func Loaded(ctx context.Context, files ...string) ([]string, error) {
	var paths []string
	for _, file := range files {
		out, err := exec.CommandContext(ctx, "ldd", file).Output()
		if err != nil {
			return nil, fmt.Errorf("ask ldd for the libraries of %s: %w", file, err)
		}
		if strings.Contains(string(out), "not found") {
			return nil, fmt.Errorf("libraries of %s are not installed: ldd says\n%s", file, out)
		}
		paths = append(paths, sharedLibraries(string(out))...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// Libraries returns the packages of the system whose shared libraries the files
// load, as the dynamic linker and dpkg name them. A library that dpkg does not
// know stands for itself.
func Libraries(ctx context.Context, files ...string) ([]Library, error) {
	paths, err := Loaded(ctx, files...)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	// dpkg knows a file by the path it was packed with, which may lack the /usr
	// that it has on the disk.
	asked := []string{"-S"}
	for _, path := range paths {
		merged := strings.TrimPrefix(path, "/usr")
		asked = append(asked, merged, "/usr"+merged)
	}
	// It fails where it misses one of them, and prints the others all the same.
	owners, err := exec.CommandContext(ctx, "dpkg-query", asked...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("ask dpkg for the packages of libraries: %w", err)
	}
	libraries, known := byPackage(paths, string(owners))
	if len(known) == 0 {
		return libraries, nil
	}
	versions, err := exec.CommandContext(ctx, "dpkg-query",
		append([]string{"-W", "-f", "${Package} ${Version} ${Architecture}\n"}, known...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("ask dpkg for versions: %w", err)
	}
	system := systemID()
	for line := range strings.Lines(string(versions)) {
		words := strings.Fields(line)
		at := slices.IndexFunc(libraries, func(l Library) bool { return len(words) == 3 && l.Package == words[0] })
		if at >= 0 {
			libraries[at].Version, libraries[at].Arch, libraries[at].System = words[1], words[2], system
		}
	}
	return libraries, nil
}

// loaded matches a line of ldd: a name and, after an arrow, its file; or, for
// the dynamic linker, the file alone.
var loaded = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// sharedLibraries returns the files that ldd prints.
func sharedLibraries(ldd string) []string {
	var paths []string
	for _, match := range loaded.FindAllStringSubmatch(ldd, -1) {
		paths = append(paths, match[1])
	}
	return paths
}

// byPackage groups libraries by their package, from owners, the output of
// 'dpkg-query -S'. It returns the names of those packages too.
func byPackage(paths []string, owners string) (libraries []Library, known []string) {
	owner := make(map[string]string)
	for line := range strings.Lines(owners) {
		name, path, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok {
			name, _, _ = strings.Cut(name, ":") // without the architecture
			owner[strings.TrimPrefix(path, "/usr")] = name
		}
	}
	sonames := make(map[string][]string)
	for _, path := range paths {
		name, ok := owner[strings.TrimPrefix(path, "/usr")]
		if !ok {
			name = filepath.Base(path)
		} else if len(sonames[name]) == 0 {
			known = append(known, name)
		}
		sonames[name] = append(sonames[name], filepath.Base(path))
	}
	for name, files := range sonames {
		libraries = append(libraries, Library{Package: name, Sonames: files})
	}
	return libraries, known
}

// systemID is the name of the distribution, debian where it does not say.
func systemID() string {
	text, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "ID="); ok {
			return strings.Trim(id, `"`)
		}
	}
	return "debian"
}

// soVersion is the version in a library's name, libonnxruntime.so.1.31.1.
var soVersion = regexp.MustCompile(`\.so\.([0-9.]+)$`)

// ONNXRuntime returns the libonnxruntime at path, with the version that its
// file's name carries.
func ONNXRuntime(path string) (File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return File{}, fmt.Errorf("find libonnxruntime ('make onnxruntime' installs it): %w", err)
	}
	sum, err := Sum(real)
	if err != nil {
		return File{}, err
	}
	f := File{Kind: cdx.ComponentTypeLibrary, Name: "onnxruntime", SHA256: sum, Licence: "MIT", Optional: true}
	if match := soVersion.FindStringSubmatch(real); match != nil {
		f.Version = match[1]
	}
	return f, nil
}

// Starters returns the models in a folder of archives, with the version that
// each archive's folder is named by.
func Starters(folder string) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.tar"))
	if err != nil {
		return nil, fmt.Errorf("list starter models: %w", err)
	}
	var files []File
	for _, path := range paths {
		version, err := topFolder(path)
		if err != nil {
			return nil, fmt.Errorf("read starter model %s: %w", path, err)
		}
		sum, err := Sum(path)
		if err != nil {
			return nil, err
		}
		files = append(files, File{
			Kind: cdx.ComponentTypeMachineLearningModel, SHA256: sum, Version: version,
			Name: "starter-" + strings.TrimSuffix(filepath.Base(path), ".tar"),
		})
	}
	return files, nil
}

func topFolder(archive string) (string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer file.Close()
	header, err := tar.NewReader(file).Next()
	if err != nil {
		return "", err
	}
	folder, _, _ := strings.Cut(header.Name, "/")
	return folder, nil
}

// Sum returns the sha256 of a file in hexadecimal digits.
func Sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("sum: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("sum %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
