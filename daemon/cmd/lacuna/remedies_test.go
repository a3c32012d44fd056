package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"lacuna/daemon/cli"
)

// A remedy is a command that a text tells somebody to type.
type remedy struct {
	text  string
	at    string
	prose bool // of a page or a help text, in which the bare name of a command is a name
}

// Everything that messages, alarms, help texts and pages tell to type can be typed
// as it stands: the command is there, its flags are known, what it requires is
// given.
func TestRemediesCanBeTypedAsTheyStand(t *testing.T) {
	all := slices.Concat(codeRemedies(t), pageRemedies(t), alarmRemedies(t))
	kinds := map[string]int{}
	tried := map[string]error{}
	remedyRoom(t)
	for _, r := range all {
		program, _, _ := strings.Cut(r.text, " ")
		kinds[program]++
		key := r.text + strconv.FormatBool(r.prose)
		err, known := tried[key]
		if !known {
			began := time.Now()
			err = typed(r)
			if d := time.Since(began); d > time.Second {
				t.Logf("%v: %s", d, r.text)
			}
			tried[key] = err
		}
		if err != nil {
			t.Errorf("%s: %q cannot be typed: %v", r.at, r.text, err)
		}
	}
	for program, least := range map[string]int{"lacuna": 150, "make": 10, "systemctl": 5} {
		if kinds[program] < least {
			t.Errorf("only %d remedies with %s were found, want at least %d: the search is broken", kinds[program], program, least)
		}
	}
}

// quoted finds commands in single quotes or backticks.
var quoted = regexp.MustCompile("['`]((?:lacuna|make|systemctl) [^'`\\n]+)['`]")

// codeRemedies returns the remedies of the string constants of the program. Those of
// raw strings are help texts.
func codeRemedies(t *testing.T) []remedy {
	t.Helper()
	var all []remedy
	walkFiles(t, ".go", func(path string, data []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			expr, ok := n.(ast.Expr)
			text, raw := constant(expr)
			if !ok || text == "" {
				return true
			}
			at := set.Position(n.Pos()).String()
			for _, m := range quoted.FindAllStringSubmatch(text, -1) {
				if m[1] == "lacuna %s" {
					continue // the name of a command that was typed
				}
				all = append(all, remedy{text: m[1], at: at, prose: raw})
			}
			for line := range strings.Lines(text) { // the examples of a help text
				if command, ok := strings.CutPrefix(line, "  lacuna "); ok && !strings.ContainsAny(command, "|%") {
					all = append(all, remedy{text: "lacuna " + strings.TrimSpace(command), at: at})
				}
			}
			return false
		})
	})
	return all
}

// constant returns the text of a string, with %s for what a sum of strings adds at
// run time, and whether a raw string is in it.
func constant(expr ast.Expr) (text string, raw bool) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, _ := strconv.Unquote(e.Value)
		return text, e.Value[0] == '`'
	case *ast.BinaryExpr:
		left, rawLeft := constant(e.X)
		right, rawRight := constant(e.Y)
		if e.Op != token.ADD || left+right == "" {
			return "", false
		}
		return cmp.Or(left, "%s") + cmp.Or(right, "%s"), rawLeft || rawRight
	}
	return "", false
}

// pageRemedies returns the commands in the sentences of the pages; those of their
// blocks are run by TestCommandsOfTheDocsWork.
func pageRemedies(t *testing.T) []remedy {
	t.Helper()
	inline := regexp.MustCompile("`((?:lacuna|make|systemctl) [^`\\n]+)`")
	var all []remedy
	walkFiles(t, ".md", func(path string, data []byte) {
		if strings.HasSuffix(path, "commands.md") || strings.HasSuffix(path, "CHANGELOG.md") { // made from the commands; about former versions
			return
		}
		number, fenced := 0, false
		for line := range strings.Lines(string(data)) {
			number++
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				all = append(all, remedy{text: m[1], at: path + ":" + strconv.Itoa(number), prose: true})
			}
		}
	})
	return all
}

// alarmRemedies returns the commands of the rules for Prometheus, which must be in
// backticks.
func alarmRemedies(t *testing.T) []remedy {
	t.Helper()
	data, err := os.ReadFile("../../../ops/alerts/lacuna.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []remedy
	bare := regexp.MustCompile("(?:^|[^`-])\\b((?:lacuna|systemctl|journalctl) [a-z]+)")
	for line := range strings.Lines(string(data)) {
		_, action, ok := strings.Cut(line, "action: '")
		if !ok {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(action, -1) {
			all = append(all, remedy{text: strings.ReplaceAll(m[1], "{{ $labels.dataset }}", "chl"), at: "lacuna.rules.yaml"})
		}
		rest := regexp.MustCompile("`[^`]+`").ReplaceAllString(action, "")
		if m := bare.FindStringSubmatch(rest); m != nil {
			t.Errorf("lacuna.rules.yaml: put %q into backticks: %s", m[1], action)
		}
	}
	return all
}

// walkFiles calls do with every file of the repository that has an ending.
func walkFiles(t *testing.T, ending string, do func(path string, data []byte)) {
	t.Helper()
	for _, top := range topEntries(t, "../../..") {
		err := filepath.WalkDir(filepath.Join("../../..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(path, ending) {
				return nil
			}
			data, err := os.ReadFile(path)
			if err == nil {
				do(path, data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// remedyRoom goes into a folder with a configuration that every command finds.
func remedyRoom(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "lacuna.yaml")
	text := "state_dir: state\nproducts_dir: products\nweb: {listen: \"127.0.0.1:0\"}\ntrain: {store: models}\ndatasets:\n  - name: chl\n    archive: {dir: archive, settle: 0s}\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "archive"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LACUNA_CONFIG", config)
	t.Chdir(dir)
}

// typed returns why a remedy cannot be typed; nil: it can.
func typed(r remedy) error {
	if r.prose && (strings.ContainsAny(r.text, "[|(…") || strings.Contains(r.text, "...") || strings.Contains(r.text, "COMMAND")) {
		return nil // a pattern, which says that it is one
	}
	words, err := wordsOf(r.text)
	if err != nil {
		return err
	}
	switch words[0] {
	case "make":
		return makes(words[1:])
	case "systemctl", "journalctl", "smartctl", "dmesg", "fuser":
		return manages(words)
	case "lacuna":
	default:
		return nil // a key, a file
	}
	if r.prose {
		return known(words[1:])
	}
	return parses(words[1:])
}

// known reports whether there is such a command with such flags; a sentence may
// leave out what the page has said before.
func known(words []string) error {
	c, rest, err := rootCommand().Find(words)
	if err != nil || c.Parent() == nil || c.DisableFlagParsing {
		return err
	}
	if err := c.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) && !strings.Contains(err.Error(), "flag needs an argument") {
		return err
	}
	if len(c.Commands()) > 0 && !c.HasAvailableFlags() && len(c.Flags().Args()) > 0 {
		return fmt.Errorf("there is no command %s below %s", c.Flags().Arg(0), c.Name())
	}
	return nil
}

// parses reports whether the program takes the words. The context is over, so that
// a command looks at its flags and arguments and does no work.
func parses(words []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	root := rootCommand()
	root.SetArgs(words)
	root.SetIn(strings.NewReader(""))
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	if c, _, err := root.Find(words); err == nil && c.Name() == "init" { // it would write, and needs the granules
		return c.ParseFlags(words[1:])
	}
	if slices.Contains([]string{"simulate", "bench", "lab"}, words[0]) { // they would begin all the same
		return known(words)
	}
	err := root.ExecuteContext(ctx)
	var usage cli.UsageError
	if errors.As(err, &usage) {
		return err
	}
	return nil
}

// makes reports whether the Makefile has a target.
func makes(words []string) error {
	out, err := exec.Command("make", slices.Concat([]string{"-n", "-C", repositoryTop}, words)...).CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
}

// manages reports whether words manage a unit that there is.
func manages(words []string) error {
	if words[0] != "systemctl" {
		return nil
	}
	i := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
	if i < 0 || !slices.Contains([]string{"start", "stop", "restart", "reload", "status", "enable", "disable", "edit", "kill", "show", "daemon-reload"}, words[1+i]) {
		return errors.New("no such verb")
	}
	for _, unit := range words[2+i:] {
		name, instance, _ := strings.Cut(strings.TrimSuffix(unit, ".service"), "@")
		if instance != "" {
			name += "@"
		}
		if strings.HasPrefix(unit, "-") {
			continue
		}
		if _, err := os.Stat(filepath.Join(repositoryTop, "systemd", name+".service")); err != nil {
			return err
		}
	}
	return nil
}

// repositoryTop is found before a test changes the folder.
var repositoryTop = func() string {
	top, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	return top
}()

// wordsOf splits a command as a shell does, with something in place of what a
// program or a reader puts in.
func wordsOf(text string) ([]string, error) {
	var words []string
	word, quote, open := "", rune(0), false
	for _, r := range text + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ':
			if open || word != "" {
				words = append(words, word)
			}
			word, open = "", false
		default:
			word += string(r)
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	for i, w := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		words[i] = placed(before, w)
	}
	return words, nil
}

// placed returns a word for the place of another one.
func placed(before, word string) string {
	place := strings.HasPrefix(word, "%") || word == strings.ToUpper(word) && strings.ToLower(word) != word
	switch {
	case before == "--config" || before == "-c":
		return os.Getenv("LACUNA_CONFIG")
	case before == "--dataset" && place:
		return "chl"
	case place && (before == "--from" || before == "--to" || word == "DAY" || word == "DATE"):
		return "2024-04-01"
	case place && (before == "-n" || before == "--days" || word == "N" || word == "%d"):
		return "1"
	case strings.HasPrefix(word, "%"):
		return "x.nc"
	}
	return word
}
