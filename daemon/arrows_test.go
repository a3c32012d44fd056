package daemon

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The arrows between the folders go down only: the daemon knows all of them,
// they know nothing of each other.
func TestImportArrowsGoDown(t *testing.T) {
	allowed := map[string]string{ // folder: what else of this module it may import
		"daemon": "fetch pipeline modelstore publish ops",
		"fetch":  "", "pipeline": "", "modelstore": "", "publish": "", "ops": "",
	}
	checked := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, _ := filepath.Rel("..", path)
		from, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			rest, ours := strings.CutPrefix(name, "lacuna/")
			if !ours {
				continue
			}
			to, _, _ := strings.Cut(rest, "/")
			checked++
			if strings.HasPrefix(rest, "pipeline/lab") && !strings.HasPrefix(rel, "daemon/cmd/") && !strings.HasPrefix(rel, "pipeline/lab/") {
				t.Errorf("%s: only a command may import the laboratory, %s", fset.Position(spec.Pos()), name)
			}
			if to != from && !strings.Contains(" "+allowed[from]+" ", " "+to+" ") {
				t.Errorf("%s: %s must not import %s", fset.Position(spec.Pos()), from, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked == 0 {
		t.Error("no import of this module was looked at")
	}
}

func TestTopLevelIsWhatTheReadmeSays(t *testing.T) {
	want := map[string]bool{
		"daemon": true, "fetch": true, "pipeline": true, "modelstore": true, "publish": true, "ops": true, "systemd": true,
		"README.md": true, "SECURITY.md": true, "go.mod": true, "go.sum": true, "LICENSE": true, "Makefile": true,
		"bin": true, "var": true, // built and produced, ignored by git
	}
	entries, err := filepath.Glob("../*")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := filepath.Base(e); !want[name] && !strings.HasPrefix(name, ".") {
			t.Errorf("%s does not belong at the top level", filepath.Base(e))
		}
	}
}
