package supply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTextOfEveryLicenceIsHandedOn(t *testing.T) {
	dir := t.TempDir()
	parts := Parts{Program: Program{Modules: []Module{{"a.org/a", "v1.0.0", ""}, {"b.org/B", "v2.0.0", ""}, {"c.org/c", "v3.0.0", ""}}}}
	for name, text := range map[string]string{
		"a.org/a@v1.0.0/LICENSE": "shared\n", "a.org/a@v1.0.0/NOTICE.txt": "made by a", "b.org/!b@v2.0.0/COPYING": "shared",
		"c.org/c@v3.0.0/licence.md": "own words", "c.org/c@v3.0.0/doc.go": "code", "further": "the further one",
	} {
		write(t, filepath.Join(dir, name), []byte(text))
	}
	further := map[string]string{"onnxruntime": filepath.Join(dir, "further")}
	got, err := Texts(parts, Sources{ModCache: dir}, further)
	want := "==== a.org/a v1.0.0 ====\n\nmade by a\n\n" +
		"==== a.org/a v1.0.0, b.org/B v2.0.0 ====\n\nshared\n\n" +
		"==== c.org/c v3.0.0 ====\n\nown words\n\n" +
		"==== onnxruntime ====\n\nthe further one\n\n"
	if err != nil || string(got) != want {
		t.Errorf("texts %v:\n%s\nwant:\n%s", err, got, want)
	}
	for _, missing := range []string{"b.org/!b@v2.0.0/COPYING", "further"} {
		if err := os.Remove(filepath.Join(dir, missing)); err != nil {
			t.Fatal(err)
		}
		if _, err := Texts(parts, Sources{ModCache: dir}, further); err == nil || !strings.Contains(err.Error(), "licence of ") {
			t.Errorf("without %s: %v, want a sentence", missing, err)
		}
		write(t, filepath.Join(dir, missing), nil)
	}
}

func TestTheTextsOfTheSystemsLibrariesAreThere(t *testing.T) {
	if _, err := os.Stat("/usr/share/doc/libc6/copyright"); err != nil {
		t.Skipf("not a Debian system with its licences: %v", err)
	}
	libraries, err := Libraries(t.Context(), "/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Texts(Parts{Libraries: libraries}, Sources{}, nil)
	if err != nil || !strings.Contains(string(got), "GNU C Library") {
		t.Errorf("the licence of libc is not among %d bytes: %v", len(got), err)
	}
}
