package daemon

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// house is the map of the packages: each row may import the rows that it names,
// all of them above it, and its tests those of the second list too. A folder
// below a row belongs to it. A name without a slash is a neighbour in the same
// folder, else a folder at the top; a/{b c} is a/b and a/c. The leaves in internal
// are everybody's.
var house = []struct{ folder, imports, tests string }{
	// Leaves that everybody may import.
	{"internal", "", ""},

	// The stages: none knows another.
	{"ledger", "", ""},
	{"fetch", "", "ledger"},
	{"publish", "", ""},
	{"modelstore", "", ""},
	{"ops", "", ""},

	// The pipeline. What everything is made of:
	{"pipeline", "", ""},
	{"pipeline/realdata", "", ""},
	{"pipeline/field", "", ""},
	{"pipeline/seamask", "field", "realdata"},
	{"pipeline/swath", "field", ""},
	{"pipeline/noise", "", ""},
	{"pipeline/trusted", "", ""},
	{"pipeline/ingest", "field", "realdata"},
	{"pipeline/simulate", "field seamask", ""},
	{"pipeline/skill", "field", ""},
	{"pipeline/matchup", "field ingest", "simulate"},
	{"pipeline/quality", "field", "noise simulate"},
	{"pipeline/merge", "field", ""},

	// What fills:
	{"pipeline/classical", "field", "realdata skill"},
	{"pipeline/covariate", "field skill classical", "simulate"},
	{"pipeline/engine", "trusted", ""},
	{"pipeline/nn", "noise engine", ""},
	{"pipeline/samples", "field noise classical", "realdata"},
	{"pipeline/impute", "field noise classical engine nn samples", ""},
	{"pipeline/infer", "field noise simulate skill quality classical covariate engine nn samples impute", ""},
	{"pipeline/parts", "field classical samples impute", ""},

	// What draws masks and splits observations by them:
	{"pipeline/partition", "field noise samples", ""},
	{"pipeline/prior", "field noise engine nn samples partition", "skill"},
	{"pipeline/masks", "noise skill samples partition prior", "engine nn"},

	// What learns:
	{"pipeline/train", "engine nn", "noise"},
	{"pipeline/learn", "field noise nn samples impute partition prior masks train", "realdata skill classical engine"},
	{"pipeline/evaluate", "field noise skill classical samples impute", ""},
	{"pipeline/version", "field noise skill classical covariate nn samples impute parts partition prior masks train learn evaluate", "simulate engine"},

	// What measures:
	{"pipeline/lab", "field noise skill classical covariate engine nn samples impute infer parts partition prior masks train learn evaluate version", "simulate"},

	// The rooms of the daemon. Small ones:
	{"daemon/state", "", ""},
	{"daemon/version", "", ""},
	{"daemon/supervise", "", ""},
	{"daemon/slots", "pipeline/{field ingest}", ""},
	{"daemon/feed", "publish pipeline/simulate", ""},
	{"daemon/gridpin", "pipeline/field", ""},
	{"daemon/quarantine", "ledger fetch state", ""},

	// The training service:
	{"daemon/retrain", "publish modelstore state pipeline/{field trusted ingest skill quality engine nn samples partition version}", "pipeline/{simulate classical impute infer evaluate}"},

	// A granule's way:
	{"daemon/covariates", "pipeline/{field ingest skill covariate}", ""},
	{"daemon/fill", "publish modelstore version state covariates pipeline/{field seamask ingest skill quality classical covariate nn samples impute infer parts}", "pipeline/{realdata simulate engine merge}"},
	{"daemon/jobs", "publish modelstore version slots fill pipeline/{field ingest skill quality impute infer parts}", ""},
	{"daemon/work", "ledger fetch publish modelstore ops state supervise slots gridpin quarantine covariates fill jobs pipeline/{field ingest skill quality covariate samples impute infer parts}", "feed pipeline/{simulate engine nn}"},
	{"daemon/workers", "publish jobs", ""},
	{"daemon/trainjob", "modelstore state version retrain jobs workers pipeline/skill", ""},
	{"daemon/books", "ledger publish state quarantine pipeline/{field ingest}", ""},
	{"daemon/outbox", "ledger fetch publish supervise books", ""},
	{"daemon/daemontest", "ledger publish outbox", ""},
	{"daemon/sources", "ledger fetch state quarantine pipeline/{field ingest merge}", ""},
	{"daemon/shadow", "state pipeline/{field ingest}", ""},
	{"daemon/intake", "ledger fetch state version quarantine shadow sources pipeline/{ingest merge}", ""},

	// The operator's side:
	{"daemon/operate", "ledger fetch publish modelstore ops state gridpin quarantine retrain fill books outbox sources intake pipeline/{field engine infer}", ""},
	{"daemon/pages", "ledger fetch publish modelstore ops state version retrain fill shadow sources intake operate pipeline/{ingest skill}", ""},
	{"daemon/onboard", "retrain fill intake pipeline/{field ingest infer}", ""},

	// Configuration, wiring and life:
	{"daemon", "ledger fetch publish modelstore ops pipeline/{trusted ingest skill quality covariate engine infer} daemon/{state supervise slots feed gridpin retrain covariates fill jobs work workers trainjob books outbox shadow intake operate pages}", "pipeline/{realdata field simulate} daemon/{version quarantine daemontest onboard}"},

	// The commands, and the program:
	{"daemon/cli", "version pipeline/ingest", ""},
	{"daemon/cli/clitest", "modelstore pipeline/{ingest simulate nn impute infer} daemon/feed", ""},
	{"daemon/cli/input", "modelstore pipeline/{field ingest skill quality covariate engine samples infer} daemon/{covariates fill onboard cli}", "clitest pipeline/simulate daemon/feed"},
	{"daemon/cli/service", "fetch publish ops pipeline/{field ingest swath} daemon daemon/{books operate pages cli}", ""},
	{"daemon/cli/files", "fetch publish modelstore input pipeline/{field ingest skill simulate engine infer} daemon/{feed retrain covariates fill intake onboard cli}", "clitest"},
	{"daemon/cli/models", "modelstore input pipeline/{engine nn infer version} daemon daemon/{version feed retrain fill onboard cli}", "clitest"},
	{"daemon/cli/measure", "publish modelstore input pipeline/{field ingest noise simulate skill matchup classical covariate engine nn samples impute infer parts partition prior masks evaluate version lab} daemon/{state retrain covariates onboard cli}", "clitest daemon/feed"},
	{"daemon/cmd/lacuna", "daemon daemon/cli daemon/cli/{service files models measure}", "ledger publish modelstore pipeline/{realdata field ingest simulate engine samples} daemon/{retrain fill}"},
	{"daemon/cuts", "", "ledger publish modelstore pipeline/simulate daemon daemon/{state feed quarantine work outbox cli} daemon/cli/{clitest service files models}"},
	{"daemon/fleet", "", "ledger publish modelstore pipeline/{field simulate engine samples infer} daemon daemon/{state feed retrain jobs work workers trainjob outbox daemontest operate} daemon/cli/{clitest models}"},
	{"daemon/chaos", "", "ledger publish pipeline/simulate daemon daemon/{feed outbox cli} daemon/cli/{clitest service models}"},

	// How it is run.
	{"systemd", "", ""},
}

// training are the rows that serving does without.
var training = []string{
	"pipeline/partition", "pipeline/prior", "pipeline/masks", "pipeline/train", "pipeline/learn", "pipeline/version", "pipeline/lab", "daemon/retrain",
}

// serving are the rows that make a product of a granule.
var serving = []string{"pipeline/infer", "daemon/fill", "daemon/jobs", "daemon/work", "daemon/outbox", "daemon/intake"}

// The imports of every package, tests included, are those of the map, and the map
// has no arrow that is not there.
func TestImportsAreThoseOfTheMap(t *testing.T) {
	allowed, inTests, used := map[string][]string{}, map[string][]string{}, map[string]bool{}
	for at, row := range house {
		allowed[row.folder] = namesOf(t, row.folder, row.imports)
		inTests[row.folder] = namesOf(t, row.folder, row.tests)
		for _, to := range slices.Concat(allowed[row.folder], inTests[row.folder]) {
			if rowAt(to) >= at {
				t.Errorf("the map lets %s import %s, which is not above it", row.folder, to)
			}
		}
	}
	for _, a := range arrowsOfTheHouse(t) {
		from, to := rowOf(a.from), rowOf(a.to)
		switch {
		case from == "" || to == "":
			t.Errorf("%s: %s or %s is not on the map", a.at, a.from, a.to)
		case from == to || to == "internal":
		case slices.Contains(allowed[from], to):
			if !a.test {
				used[from+" "+to] = true
			}
		case a.test && slices.Contains(inTests[from], to):
			used[from+" "+to] = true
		default:
			t.Errorf("%s: %s must not import %s", a.at, a.from, a.to)
		}
	}
	for _, row := range house {
		for _, to := range slices.Concat(allowed[row.folder], inTests[row.folder]) {
			if !used[row.folder+" "+to] {
				t.Errorf("the map lets %s import %s, which it does not: take the arrow off", row.folder, to)
			}
		}
	}
}

func TestEveryPackageIsOnTheMap(t *testing.T) {
	list := exec.Command("go", "list", "./...")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		if rel := strings.TrimPrefix(name, "lacuna/"); rowOf(rel) == "" {
			t.Errorf("%s is not on the map", rel)
		}
	}
}

// What makes a product of a granule links nothing that trains.
func TestServingDoesNotImportTraining(t *testing.T) {
	imports := map[string][]string{}
	for _, row := range house {
		imports[row.folder] = namesOf(t, row.folder, row.imports)
	}
	for _, start := range serving {
		by := map[string]string{start: start} // row: the way to it
		for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
			for _, to := range imports[queue[0]] {
				if by[to] != "" {
					continue
				}
				by[to] = by[queue[0]] + " → " + to
				queue = append(queue, to)
				if slices.Contains(training, to) {
					t.Errorf("serving imports training: %s", by[to])
				}
			}
		}
		if len(by) < 3 {
			t.Errorf("%s imports nothing: it is not what serves", start)
		}
	}
}

// Only the commands that measure know the laboratory.
func TestOnlyMeasurementsImportTheLaboratory(t *testing.T) {
	for _, row := range house {
		if row.folder != "daemon/cli/measure" && slices.Contains(namesOf(t, row.folder, row.imports), "pipeline/lab") {
			t.Errorf("%s may import the laboratory", row.folder)
		}
	}
}

// namesOf returns the rows that a list in the row of a folder names.
func namesOf(t *testing.T, folder, list string) []string {
	t.Helper()
	var all []string
	for list = strings.TrimSpace(list); list != ""; list = strings.TrimSpace(list) {
		name, rest, _ := strings.Cut(list, " ")
		if before, _, found := strings.Cut(name, "{"); found {
			inside, after, closed := strings.Cut(list[len(before)+1:], "}")
			if !closed {
				t.Fatalf("no } in the row of %s", folder)
			}
			for _, last := range strings.Fields(inside) {
				all = append(all, before+last)
			}
			list = after
			continue
		}
		if neighbour := path.Join(path.Dir(folder), name); rowAt(neighbour) >= 0 {
			name = neighbour
		}
		if rowAt(name) < 0 {
			t.Errorf("the row of %s names %s, which is no row", folder, name)
		}
		all = append(all, name)
		list = rest
	}
	return all
}

// rowAt returns where on the map a row is; -1: it is none.
func rowAt(folder string) int {
	return slices.IndexFunc(house, func(row struct{ folder, imports, tests string }) bool { return row.folder == folder })
}

// rowOf returns the row that a package belongs to; empty: none.
func rowOf(pkg string) string {
	for ; pkg != "." && pkg != "/"; pkg = path.Dir(pkg) {
		if rowAt(pkg) >= 0 {
			return pkg
		}
	}
	return ""
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

// An arrow is one import of a package of this module by another.
type arrow struct {
	from, to string // without the name of the module
	at       string
	test     bool
}

// arrowsOfTheHouse returns those of all folders that the map names. The folder above them
// is not read: git and make change it, and go test would run every test of this
// package again.
func arrowsOfTheHouse(t *testing.T) []arrow {
	t.Helper()
	var all []arrow
	seen := map[string]bool{}
	for _, row := range house {
		top, _, _ := strings.Cut(row.folder, "/")
		if !seen[top] {
			seen[top] = true
			all = append(all, arrowsBelow(t, filepath.Join("..", top))...)
		}
	}
	if len(all) == 0 {
		t.Fatal("no import of this module was looked at")
	}
	return all
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
	return all
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
	"python":     "the package for users of Python",

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
	out, err := exec.Command("ls", "-A", "..").Output() // read by another program, see arrowsOfTheHouse
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{"bin": true, "var": true} // not in a fresh clone
	for _, name := range strings.Fields(string(out)) {
		there[name] = true
		if topLevel[name] == "" && !strings.HasPrefix(name, ".") {
			t.Errorf("%s does not belong at the top level; the table says what does", name)
		}
	}
	for name, purpose := range topLevel {
		if !there[name] {
			t.Errorf("%s (%s) is not at the top level", name, purpose)
		}
	}
}
