package daemon

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// longestWay bounds the functions of a way: as many as a person keeps in mind.
const longestWay = 12

// step is a line of a way: the folder of a package, and a function or a method.
var step = regexp.MustCompile("(?m)^[0-9]+\\. `([a-z0-9/]+)` `([A-Za-z.]+)`")

// The developers' page lists the functions on the ways of a granule and of a model;
// they must exist under those names.
func TestTheWaysOfTheDevelopersPageExist(t *testing.T) {
	text, err := os.ReadFile("../docs/developers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"## A granule's way", "## A model's way"} {
		_, section, found := strings.Cut(string(text), title+"\n")
		if !found {
			t.Errorf("the page has no section %q", title)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		steps := step.FindAllStringSubmatch(section, -1)
		if len(steps) < 2 || len(steps) > longestWay {
			t.Errorf("%s has %d steps, want at most %d", title, len(steps), longestWay)
		}
		for _, s := range steps {
			if !declares(t, "../"+s[1], s[2]) {
				t.Errorf("%s: package %s has no %s", title, s[1], s[2])
			}
		}
	}
}

// declares reports whether a package has a function, or a method as Type.Method,
// outside its tests.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), folder+"/"+e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && receiver(f)+f.Name.Name == name {
				return true
			}
		}
	}
	return false
}

// receiver returns the type of a method with a dot behind it; empty for a
// function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	at := f.Recv.List[0].Type
	if star, ok := at.(*ast.StarExpr); ok {
		at = star.X
	}
	if id, ok := at.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}
