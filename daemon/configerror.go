package daemon

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"lacuna/internal/faults"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// parseConfig decodes src over the defaults and checks the result. It does not
// stop at the first fault of a value, and every line of its error begins with
// path:line.
func parseConfig(path string, src []byte) (cfg Config, err error) {
	// The library panics at a tagged word where a list is expected, among others.
	defer func() {
		if p := recover(); p != nil {
			cfg, err = Config{}, fmt.Errorf("%s: this is YAML that cannot be read (%v): look for a tag, as in !word, or an anchor where a list or a mapping is expected", path, p)
		}
	}()
	cfg = DefaultConfig()
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return Config{}, explainDecode(path, src, err)
	}
	if len(file.Docs) > 0 && file.Docs[0].Body != nil { // an empty file is all defaults
		body := file.Docs[0].Body
		// Before it is decoded: the library panics at a list that is too long.
		if err := checkLists(path, body); err != nil {
			return Config{}, err
		}
		if err := yaml.NewDecoder(strings.NewReader(""), yaml.Strict()).DecodeFromNode(body, &cfg); err != nil {
			return Config{}, explainDecode(path, src, err)
		}
	}
	var errs []error
	for _, f := range cfg.faults() {
		errs = append(errs, fmt.Errorf("%s:%d: %s.%s", path, f.line(file), strings.TrimPrefix(f.section, "$."), f.message))
	}
	return cfg, errors.Join(errs...)
}

// A fault is one thing wrong with a value. By convention the message begins
// with the key, relative to the section.
type fault struct {
	section string // YAML path, such as $.datasets[0].fill
	message string
}

// faultsOf splits a joined error into its faults.
func faultsOf(section string, err error) []fault {
	if err == nil {
		return nil
	}
	if part, ok := err.(interface{ Section() string }); ok {
		return faultsOf(section+"."+part.Section(), errors.Unwrap(err))
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []fault
		for _, e := range joined.Unwrap() {
			all = append(all, faultsOf(section, e)...)
		}
		return all
	}
	return []fault{{section: section, message: err.Error()}}
}

// line returns the line of the faulty key, or of its section where the file does
// not have the key.
func (f fault) line(file *ast.File) int {
	key, _, _ := strings.Cut(f.message, " ")
	for path := f.section + "." + key; path != ""; path = parentPath(path) {
		p, err := yaml.PathString(path)
		if err != nil {
			continue
		}
		node, err := p.FilterFile(file)
		if err == nil && node != nil && node.GetToken() != nil {
			return node.GetToken().Position.Line
		}
	}
	return 1
}

// parentPath cuts the last part off a YAML path; "" above the root.
func parentPath(path string) string {
	i := strings.LastIndexAny(path, ".[")
	if i < 0 {
		return ""
	}
	return path[:i]
}

var (
	positioned = regexp.MustCompile(`^\[(\d+):\d+\] (.*)`)
	unknownKey = regexp.MustCompile(`unknown field "([^"]*)"`)
	quoted     = regexp.MustCompile(`"([^"]*)"`)
)

// explainDecode rewrites an error of the YAML library as path:line: the fault and
// the allowed values, with the lines of the file below.
func explainDecode(path string, src []byte, err error) error {
	text := yaml.FormatError(err, false, true)
	first, excerpt, _ := strings.Cut(text, "\n")
	line, message := "1", first
	if m := positioned.FindStringSubmatch(first); m != nil {
		line, message = m[1], m[2]
	} else if m := quoted.FindStringSubmatch(first); m != nil {
		// Some errors have no position: find the line of the value that they name.
		for i, l := range strings.Split(string(src), "\n") {
			if strings.Contains(l, m[1]) {
				line, message = fmt.Sprint(i+1), first+" in: "+strings.TrimSpace(l)
				break
			}
		}
	}
	if m := unknownKey.FindStringSubmatch(message); m != nil {
		message = fmt.Sprintf("unknown key %q; allowed here: %s", m[1], strings.Join(allowedBeside(src, m[1], line), ", "))
	}
	if excerpt != "" {
		excerpt = "\n" + strings.TrimRight(excerpt, "\n")
	}
	return fmt.Errorf("%s:%s: %s%s", path, line, message, excerpt)
}

// allowedBeside returns the keys of the mapping in which key stands at line.
func allowedBeside(src []byte, key, line string) []string {
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil
	}
	found := ""
	ast.Walk(visitor(func(n ast.Node) {
		if v, ok := n.(*ast.MappingValueNode); ok && v.Key.String() == key &&
			fmt.Sprint(v.Key.GetToken().Position.Line) == line {
			found = v.GetPath()
		}
	}), file.Docs[0].Body)
	keys := keysOf(typeAt(parentPath(found)))
	slices.Sort(keys)
	return keys
}

// checkLists reports lists that have more or fewer values than their keys take.
func checkLists(path string, body ast.Node) error {
	var errs faults.List
	ast.Walk(visitor(func(n ast.Node) {
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			return
		}
		t := typeAt(list.GetPath())
		if t == nil || t.Kind() != reflect.Array || t.Len() == len(list.Values) {
			return
		}
		values := "values"
		if len(list.Values) == 1 {
			values = "value"
		}
		errs.Check(false, "%s:%d: %s has %d %s, must have %d", path, list.GetToken().Position.Line,
			strings.TrimPrefix(list.GetPath(), "$."), len(list.Values), values, t.Len())
	}), body)
	return errs.Err()
}

// typeAt returns the type of the value at a YAML path; nil: there is none.
func typeAt(path string) reflect.Type {
	t := reflect.TypeFor[Config]()
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "$"), ".") {
		name, _, _ := strings.Cut(part, "[")
		if name == "" {
			continue
		}
		if t == nil || t.Kind() != reflect.Struct {
			return nil
		}
		t = fieldOf(t, name)
	}
	return t
}

type visitor func(ast.Node)

func (v visitor) Visit(n ast.Node) ast.Visitor { v(n); return v }

// fieldOf returns the type under a key, or of its elements.
func fieldOf(t reflect.Type, key string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		if name, inline := yamlName(f); inline {
			if sub := fieldOf(f.Type, key); sub != nil {
				return sub
			}
		} else if name == key {
			ft := f.Type
			for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
				ft = ft.Elem()
			}
			return ft
		}
	}
	return nil
}

// keysOf returns the keys that a struct type takes.
func keysOf(t reflect.Type) []string {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for i := range t.NumField() {
		f := t.Field(i)
		if name, inline := yamlName(f); inline {
			keys = append(keys, keysOf(f.Type)...)
		} else if name != "" && name != "-" {
			keys = append(keys, name)
		}
	}
	return keys
}

func yamlName(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name, options == "inline"
}
