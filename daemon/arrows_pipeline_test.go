package daemon

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The folders of the pipeline, from what knows nothing of the others to what
// knows most. Each may import those that its row names, and nothing below it
// in the table; test files may import those of the second list too. The leaves
// in internal are everybody's.
var pipelineMap = []struct{ folder, imports, tests string }{
	{"field", "", ""},
	{"seamask", "field", "realdata"},
	{"noise", "", ""},
	{"trusted", "", ""},
	{"realdata", "", ""},
	{"ingest", "field", "realdata"},
	{"simulate", "field seamask", ""},
	{"skill", "field", ""},

	// What fills.
	{"classical", "field", "realdata"},
	{"engine", "trusted", ""},
	{"nn", "engine noise", ""},
	{"samples", "classical field noise", ""},
	{"impute", "classical engine field nn noise samples", ""},
	{"infer", "classical engine field impute nn noise samples simulate skill", ""},

	// What draws masks and splits observations by them.
	{"partition", "field noise samples", ""},
	{"prior", "engine field nn noise partition samples", "skill"},
	{"masks", "noise partition prior samples skill", "engine nn"},

	// What learns.
	{"train", "engine nn", "noise"},
	{"learn", "field impute masks nn noise partition prior samples train", "classical engine realdata skill"},
	{"evaluate", "classical field impute noise samples skill", ""},
	{"version", "classical evaluate field impute learn masks nn noise partition prior samples skill train", "engine simulate"},

	// What measures.
	{"lab", "classical engine evaluate field impute infer learn masks nn noise partition prior samples skill train version", "simulate"},
}

// training are the folders that serving does without.
var training = []string{"partition", "prior", "masks", "train", "learn", "version", "lab"}

func TestArrowsOfThePipelineAreThoseOfTheMap(t *testing.T) {
	imports, tests := map[string][]string{}, map[string][]string{}
	for at, row := range pipelineMap {
		imports[row.folder] = strings.Fields(row.imports)
		tests[row.folder] = append(strings.Fields(row.tests), imports[row.folder]...)
		for _, to := range imports[row.folder] {
			if !slices.ContainsFunc(pipelineMap[:at], func(r struct{ folder, imports, tests string }) bool { return r.folder == to }) {
				t.Errorf("the map lets %s import %s, which is not above it", row.folder, to)
			}
		}
	}
	used := map[string]map[string]bool{}
	for _, a := range arrowsBelow(t, "../pipeline") {
		from, to := folderOf(a.from), folderOf(a.to)
		if from == to || from == "" || strings.HasPrefix(a.to, "internal/") {
			continue
		}
		allowed, known := imports[from]
		if !known {
			t.Errorf("pipeline/%s is not on the map", from)
			continue
		}
		if a.test {
			allowed = tests[from]
		} else {
			if used[from] == nil {
				used[from] = map[string]bool{}
			}
			used[from][to] = true
		}
		if !slices.Contains(allowed, to) {
			t.Errorf("%s: pipeline/%s must not import %s", a.at, from, a.to)
		}
	}
	for _, row := range pipelineMap {
		for _, to := range imports[row.folder] {
			if !used[row.folder][to] {
				t.Errorf("the map lets %s import %s, which it does not: take the arrow off", row.folder, to)
			}
		}
	}
}

// What fills a granule links nothing that trains.
func TestServingDoesNotImportTraining(t *testing.T) {
	direct := map[string]map[string]bool{}
	for _, a := range arrowsBelow(t, "../pipeline") {
		if a.test {
			continue
		}
		if direct[a.from] == nil {
			direct[a.from] = map[string]bool{}
		}
		direct[a.from][a.to] = true
	}
	const serving = "pipeline/infer"
	by := map[string]string{serving: serving} // package: the way to it
	queue := []string{serving}
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		for _, to := range slices.Sorted(maps.Keys(direct[from])) {
			if by[to] != "" {
				continue
			}
			by[to] = by[from] + " → " + to
			queue = append(queue, to)
			if slices.Contains(training, folderOf(to)) {
				t.Errorf("serving imports training: %s", by[to])
			}
		}
	}
	if by["pipeline/impute"] == "" {
		t.Error("pipeline/infer does not import pipeline/impute: nothing was looked at")
	}
}

// Only the commands that measure and the laboratory itself know the laboratory.
func TestOnlyMeasurementsImportTheLaboratory(t *testing.T) {
	const measurements = "daemon/cli/measure"
	for _, a := range arrowsBelow(t, "..") {
		if folderOf(a.to) == "lab" && folderOf(a.from) != "lab" && a.from != measurements {
			t.Errorf("%s: only %s may import the laboratory, %s", a.at, measurements, a.to)
		}
	}
}

func TestTheMapOfThePipelineNamesEveryFolder(t *testing.T) {
	text, err := os.ReadFile("../pipeline/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../pipeline")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.Contains(string(text), "\n//\t"+e.Name()+" ") {
			t.Errorf("pipeline/doc.go has no line for %s", e.Name())
		}
	}
}

// folderOf returns the folder of the pipeline that a package is in, or "".
func folderOf(pkg string) string {
	rest, ours := strings.CutPrefix(pkg, "pipeline/")
	if !ours {
		return ""
	}
	folder, _, _ := strings.Cut(rest, "/")
	return folder
}

// An arrow is one import of a package of this module by another.
type arrow struct {
	from, to string // without the name of the module
	at       string
	test     bool
}

func arrowsBelow(t *testing.T, root string) []arrow {
	t.Helper()
	var all []arrow
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if to, ours := strings.CutPrefix(name, "lacuna/"); ours {
				all = append(all, arrow{
					from: filepath.ToSlash(filepath.Dir(rel)), to: to,
					at: fset.Position(spec.Pos()).String(), test: strings.HasSuffix(path, "_test.go"),
				})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no import of this module was looked at")
	}
	return all
}
