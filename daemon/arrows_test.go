package daemon

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The arrows between the folders go down only: the daemon knows all of them,
// they know nothing of each other, and its rooms do not know it. The leaves in
// internal know none of them, and everybody may know the leaves.
func TestImportArrowsGoDown(t *testing.T) {
	allowed := map[string]string{ // folder: what else of this module it may import
		"daemon":   "fetch pipeline modelstore publish ops ledger internal",
		"fetch":    "internal",
		"pipeline": "internal", "modelstore": "internal", "publish": "internal", "ops": "internal", "ledger": "internal",
		"internal": "",
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
			if isRoom(filepath.ToSlash(filepath.Dir(rel))) && !isRoom(rest) && to == "daemon" {
				t.Errorf("%s: a room of the daemon must not import %s", fset.Position(spec.Pos()), name)
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

// isRoom reports whether a package is a part of the daemon that the daemon wires
// and that does not know it.
func isRoom(folder string) bool {
	return strings.HasPrefix(folder, "daemon/") && !isCommand(folder)
}

// topLevel is what lies at the top of the repository, and what it is for.
var topLevel = map[string]string{
	"fetch":      "granules from archives into the spool",
	"pipeline":   "a granule in, an analysis out; models from data",
	"publish":    "products out to disk, S3 and Kafka",
	"modelstore": "model versions, cards and promotions",
	"ledger":     "every granule and delivery, and how far it has come",
	"ops":        "what the operator sees: status, metrics, alarms",
	"daemon":     "wiring, life, configuration and commands",
	"internal":   "leaves that several folders share and that know none of them",
	"systemd":    "how it is run as a service",
	"docs":       "handbooks and references",

	"README.md":       "what it is, and the first two commands",
	"CHANGELOG.md":    "what a release changed for its users",
	"CONTRIBUTING.md": "how to build, test and change it",
	"SECURITY.md":     "what is trusted, and how to report a hole",
	"LICENSE":         "Apache 2.0",
	"Makefile":        "every task that a person types",
	"go.mod":          "the Go module", "go.sum": "its sums",

	"bin": "built, ignored by git", "var": "produced by make run, ignored by git",
}

func TestTopLevelIsTheTable(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{"bin": true, "var": true} // not in a fresh clone
	for _, e := range entries {
		there[e.Name()] = true
		if topLevel[e.Name()] == "" && !strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s does not belong at the top level; the table says what does", e.Name())
		}
	}
	for name, purpose := range topLevel {
		if !there[name] {
			t.Errorf("%s (%s) is not at the top level", name, purpose)
		}
	}
}
