package daemon

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/daemon/gridpin"
	"lacuna/daemon/intake"
	"lacuna/fetch"
	"lacuna/pipeline/covariate"
	"lacuna/publish/kafka"
	"lacuna/publish/s3"

	"github.com/goccy/go-yaml"
)

var updateDocs = flag.Bool("update-docs", false, "rewrite docs/configuration.md and metrics.md")

// The reference is made from the types of the configuration: keys from the tags,
// defaults from the functions that return them, and meanings from the comments
// beside the fields. A key without a comment is a fault.
func TestConfigurationReferenceIsTheCode(t *testing.T) {
	r := &reference{t: t, comments: map[string]map[string]string{}, yaml: exampleComments(t)}
	r.section("", "Configuration", "", reflect.ValueOf(DefaultConfig()))
	if len(r.silent) > 0 {
		t.Errorf("no word on what these keys are for; write a comment beside the field: %s", strings.Join(r.silent, ", "))
	}
	compareDocs(t, "configuration.md", []byte(referenceHead+r.text.String()))
}

const referenceHead = `# Configuration reference

**Which keys are there, what are their defaults and units?** Made from the code by ` + "`go test ./daemon -run Reference -update-docs`" + `; a test compares. The file is YAML, and a key that
is not listed here is an error that names those that are. ` + "`lacuna check`" + ` reads a file as the daemon does,
` + "`lacuna init`" + ` writes one for a dataset of yours, and ` + "`systemd/lacuna.yaml`" + ` has every key at its default.

A duration is a number with a unit: ` + "`90s`, `5m`, `36h`" + `. A secret is one of ` + "`{env: NAME}`, `{file: PATH}` and `{credential: NAME}`" + `
(of systemd), and never stands in the file itself.
`

// compareDocs compares a page of the docs with the generated text.
func compareDocs(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join("../docs", name)
	if *updateDocs {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./daemon -run Reference -update-docs", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says; run go test ./daemon -run Reference -update-docs", path)
	}
}

type reference struct {
	t        *testing.T
	text     strings.Builder
	comments map[string]map[string]string // by package path, then Type.Field
	yaml     map[string]string            // comments of the example configuration, by key path
	silent   []string
}

// section writes the keys of a struct, then the sections below it.
func (r *reference) section(path, title, doc string, v reflect.Value) {
	level := min(2+strings.Count(path, ".")+strings.Count(path, "[]"), 4)
	fmt.Fprintf(&r.text, "\n%s %s\n\n", strings.Repeat("#", level), title)
	if doc != "" {
		fmt.Fprintf(&r.text, "%s.\n\n", strings.ToUpper(doc[:1])+strings.TrimSuffix(doc[1:], "."))
	}
	var below []func()
	rows := r.keys(path, v, &below)
	if len(rows) > 0 {
		r.text.WriteString("| key | type | default | what for |\n|---|---|---|---|\n" + strings.Join(rows, ""))
	}
	for _, f := range below {
		f()
	}
}

// keys returns the rows of a struct, and the sections below them.
func (r *reference) keys(path string, v reflect.Value, below *[]func()) []string {
	var rows []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, inline := yamlName(f)
		if inline {
			rows = append(rows, r.keys(path, v.Field(i), below)...)
			continue
		}
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		full := strings.TrimPrefix(path+"."+name, ".")
		doc := r.doc(v.Type(), f, full)
		if name == "archive" && strings.HasSuffix(path, "sources[]") {
			rows = append(rows, fmt.Sprintf("| `%s` | section | see `datasets[].archive` | %s |\n", name, doc))
			continue
		}
		if sub, ok := subsection(v.Field(i)); ok {
			title := full
			if f.Type.Kind() == reflect.Slice {
				title += "[]"
			}
			*below = append(*below, func() { r.section(title, "`"+title+"`", doc, sub) })
			continue
		}
		if doc == "" {
			r.silent = append(r.silent, full)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, typeName(f.Type), defaultOf(v.Field(i)), strings.ReplaceAll(doc, "|", "\\|")))
	}
	return rows
}

// subsection returns the struct that a field holds, with its defaults; false for a
// field that is a single value to a user.
func subsection(v reflect.Value) (reflect.Value, bool) {
	switch v.Interface().(type) {
	case time.Duration, fetch.Floor, fetch.Days, fetch.SecretConfig, feed.Size, gridpin.Shape:
		return v, false
	case []Dataset:
		return reflect.ValueOf(DefaultDataset()), true
	case []intake.Source:
		return reflect.ValueOf(intake.Source{}), true
	case []covariate.Config:
		return reflect.ValueOf(covariate.DefaultConfig()), true
	case *kafka.Config:
		return reflect.ValueOf(kafka.DefaultConfig()), true
	case *s3.Config:
		return reflect.ValueOf(s3.DefaultConfig()), true
	case *feed.Feed:
		return reflect.ValueOf(feed.Feed{}), true
	}
	t := v.Type()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return v, false
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return reflect.New(t).Elem(), true
		}
		v = v.Elem()
	}
	return v, true
}

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[fetch.Floor]():
		return "size or share"
	case reflect.TypeFor[fetch.Days]():
		return "days"
	case reflect.TypeFor[fetch.SecretConfig]():
		return "secret"
	case reflect.TypeFor[feed.Size](), reflect.TypeFor[gridpin.Shape]():
		return "HEIGHTxWIDTH"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Array:
		return fmt.Sprintf("%d times %s", t.Len(), typeName(t.Elem()))
	case reflect.Map:
		return "map"
	case reflect.Float64, reflect.Float32:
		return "number"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer"
	}
	return t.Kind().String()
}

func defaultOf(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case fetch.SecretConfig:
		return "none"
	case fetch.Floor:
		if x.Bytes > 0 {
			return fmt.Sprintf("`%dGiB`", x.Bytes>>30)
		}
	case fetch.Days, feed.Size, gridpin.Shape, [2]float64:
		return "none"
	case time.Duration:
		if x == 0 {
			return "`0s`"
		}
		text := x.String()
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(text, zero) {
				text = text[:len(text)-2]
			}
		}
		return "`" + text + "`"
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() == 0 {
			return "empty"
		}
		return "`" + v.String() + "`"
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 {
			return "none"
		}
		items := make([]string, v.Len())
		for i := range items {
			items[i] = fmt.Sprintf("`%v`", v.Index(i))
		}
		return strings.Join(items, ", ")
	case reflect.Pointer:
		return "none"
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

// doc returns the meaning of a field: the comment beside it in the code, else the
// one in the example configuration.
func (r *reference) doc(owner reflect.Type, f reflect.StructField, full string) string {
	pkg := owner.PkgPath()
	if r.comments[pkg] == nil {
		r.comments[pkg] = fieldComments(r.t, filepath.Join("..", strings.TrimPrefix(pkg, "lacuna/")))
	}
	if doc := r.comments[pkg][owner.Name()+"."+f.Name]; doc != "" {
		return doc
	}
	return r.yaml[strings.ReplaceAll(full, "[]", "")]
}

// fieldComments returns the comments of the struct fields of a package.
func fieldComments(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						out[spec.Name.Name+"."+name.Name] = sentence(name.Name, f)
					}
				}
			}
			return true
		})
	}
	return out
}

// sentence returns the comment of a field on one line. A comment above it
// begins with its Go name, which means nothing to a user.
func sentence(name string, f *ast.Field) string {
	text := f.Comment.Text()
	if strings.TrimSpace(text) == "" {
		text = f.Doc.Text()
	}
	text = strings.Join(strings.Fields(text), " ")
	for _, verb := range []string{" is ", " are ", " says ", " holds "} {
		text = strings.TrimPrefix(text, name+verb)
	}
	return strings.TrimSuffix(text, ".")
}

// exampleComments returns the comments of systemd/lacuna.yaml by the path of
// their key.
func exampleComments(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../systemd/lacuna.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var path []string
	var indents []int
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		body, comment, _ := strings.Cut(strings.Replace(line, "# ", "  ", min(1, strings.Count(line[:min(4, len(line))], "#"))), " #")
		key, _, ok := strings.Cut(strings.Replace(body, "- ", "  ", 1), ":")
		name := strings.TrimSpace(key)
		if !ok || name == "" || strings.ContainsAny(name, " #") {
			continue
		}
		indent := len(key) - len(strings.TrimLeft(key, " "))
		for len(indents) > 0 && indents[len(indents)-1] >= indent {
			path, indents = path[:len(path)-1], indents[:len(indents)-1]
		}
		path, indents = append(path, name), append(indents, indent)
		out[strings.Join(path, ".")] = strings.TrimSpace(comment)
	}
	return out
}

// The table of metrics must have the names and the help texts in the golden file
// of package ops.
func TestMetricsReferenceIsTheCode(t *testing.T) {
	data, err := os.ReadFile("../ops/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\n**What does `/metrics` of the status page say?** This, for Prometheus. Made from the code by\n`go test ./daemon -run Reference -update-docs`; a test compares. The alert rules in `ops/alerts` use them.\n\n| name | type | what it says |\n|---|---|---|\n")
	help := ""
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		switch {
		case len(fields) == 4 && fields[1] == "HELP":
			help = fields[3]
		case len(fields) == 4 && fields[1] == "TYPE":
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", fields[2], fields[3], help)
		}
	}
	compareDocs(t, "metrics.md", []byte(b.String()))
}

// The table of alarms must have the rules for Prometheus.
func TestAlarmsReferenceIsTheRules(t *testing.T) {
	data, err := os.ReadFile("../ops/alerts/lacuna.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert       string
				For         string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(data, &rules); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Alarms\n\n**What does an alarm mean, and what do I do?** Made from `ops/alerts/lacuna.rules.yaml` by `go test ./daemon -run Reference -update-docs`; a test compares.\n")
	for _, group := range rules.Groups {
		fmt.Fprintf(&b, "\n## %s\n\n| alarm | what is wrong | what to do |\n|---|---|---|\n", group.Name)
		for _, r := range group.Rules {
			if r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("%s says not what is wrong or not what to do", r.Alert)
			}
			fmt.Fprintf(&b, "| %s (%s) | %s | %s |\n", r.Alert, r.Labels["severity"], label(r.Annotations["summary"]), label(r.Annotations["action"]))
		}
	}
	compareDocs(t, "alarms.md", []byte(b.String()))
}

var template = regexp.MustCompile(`\{\{[^}]*?(labels\.([a-z]+)|\$value)[^}]*\}\}`)

// label replaces the placeholders of Prometheus by words.
func label(text string) string {
	text = template.ReplaceAllStringFunc(text, func(m string) string {
		if name := template.FindStringSubmatch(m)[2]; name != "" {
			return strings.ToUpper(name)
		}
		return "N"
	})
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
