package ort

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/trusted"
)

// ownFile makes a file of this user.
func ownFile(t *testing.T, name string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := trusted.File(file); errors.Is(err, trusted.ErrUntrusted) {
		t.Skipf("others may write the folder for temporary files: %v", err)
	}
	return file
}

func TestAProgramFindsTheLibraryOfItsPackageOrCheckoutFromAnyFolder(t *testing.T) {
	name := libraryNames()[0]
	for exe, want := range map[string][]string{
		"/src/lacuna/bin/lacuna":   {"/src/lacuna/bin/" + name, "/src/lacuna/lib/lacuna/" + name, "/src/lacuna/.cache/onnxruntime/" + name},
		"/usr/bin/lacuna":          {"/usr/bin/" + name, "/usr/lib/lacuna/" + name, "/usr/.cache/onnxruntime/" + name},
		"/srv/sea/lacuna":          {"/srv/sea/" + name},
		"/tmp/go-build1/b001/test": {"/tmp/go-build1/b001/" + name},
		"":                         nil,
	} {
		if got := besideProgram(exe); !slices.Equal(got, want) {
			t.Errorf("beside %q it looks for %q, want %q", exe, got, want)
		}
	}
}

func TestALibraryInTheWorkingDirectoryIsNotLoaded(t *testing.T) {
	t.Setenv(LibraryVariable, "")
	planted := ownFile(t, filepath.Join(".cache", "onnxruntime", libraryNames()[0]))
	checkout := filepath.Dir(filepath.Dir(filepath.Dir(planted)))
	below := filepath.Join(checkout, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	// An empty or a relative folder on the path is the working directory too.
	t.Setenv("LD_LIBRARY_PATH", ":../../.cache/onnxruntime:.cache/onnxruntime")
	for _, dir := range []string{checkout, below, filepath.Dir(planted)} {
		t.Chdir(dir)
		if got, err := LibraryPath(""); err == nil && strings.HasPrefix(got, checkout) {
			t.Errorf("in %s the library is %s", dir, got)
		}
	}
	t.Setenv(LibraryVariable, filepath.Base(planted))
	_, err := LibraryPath("")
	wantMessage(t, err, "$"+LibraryVariable, "not an absolute path")
	if got, err := LibraryPath(filepath.Base(planted)); err != nil || got != planted {
		t.Errorf("the library that is typed with its name here = %q, %v, want %q", got, err, planted)
	}
}

func TestALibraryThatOthersMayWriteIsRefusedWithASentence(t *testing.T) {
	library := ownFile(t, libraryNames()[0])
	provider := filepath.Join(filepath.Dir(library), "libonnxruntime_providers_shared.so")
	if err := os.WriteFile(provider, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, spoilt := range []string{library, filepath.Dir(library), provider} {
		info, err := os.Stat(spoilt)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(spoilt, info.Mode().Perm()|0o002); err != nil {
			t.Fatal(err)
		}
		_, err = LibraryPath(library)
		wantMessage(t, err, spoilt+" can be written by everybody", "chmod go-w")
		s := search{exe: filepath.Join(filepath.Dir(library), "lacuna"), check: checkLibrary}
		_, err = s.find()
		wantMessage(t, err, spoilt+" can be written by everybody", installHint)
		if err := os.Chmod(spoilt, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(LibraryVariable, library)
	if got, err := LibraryPath(""); err != nil || got != library {
		t.Errorf("the library that $%s names = %q, %v", LibraryVariable, got, err)
	}
}

func TestTheSearchGoesOnPastARefusedLibrary(t *testing.T) {
	s := search{exe: "/opt/sea/bin/lacuna", system: []string{"/usr/lib"}}
	var asked []string
	s.check = func(path string) (string, error) {
		asked = append(asked, path)
		switch {
		case strings.HasPrefix(path, "/opt/sea/.cache"):
			return "", trusted.ErrUntrusted
		case strings.HasPrefix(path, "/usr/lib/"):
			return path, nil
		}
		return "", os.ErrNotExist
	}
	got, err := s.find()
	if err != nil || got.Path != asked[len(asked)-1] || len(asked) != 4 {
		t.Errorf("found %v, %v after %q", got, err, asked)
	}
	if len(got.Refused) != 1 || !errors.Is(got.Refused[0], trusted.ErrUntrusted) {
		t.Errorf("refused are %v", got.Refused)
	}
	s.configured = "/opt/sea/.cache/mine.so"
	if got, err := s.find(); !errors.Is(err, trusted.ErrUntrusted) {
		t.Errorf("a library that was asked for by name and is refused = %v, %v", got, err)
	}
}

func TestTheLoadersFoldersAreReadAsTheLoaderDoes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ld.so.conf": "# comment\n/opt/a # why\ninclude conf.d/*.conf\nrelative/b\n", "conf.d/x.conf": "/opt/c\ninclude " + dir + "/ld.so.conf\n", "conf.d/y.txt": "/opt/d\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := loaderFolders(filepath.Join(dir, "ld.so.conf"), 0)
	if !slices.Contains(got, "/opt/a") || !slices.Contains(got, "/opt/c") || slices.Contains(got, "/opt/d") || slices.Contains(got, "relative/b") {
		t.Errorf("folders %q", got)
	}
}
