package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

var updateDocs = flag.Bool("update-docs", false, "rewrite docs/commands.md")

// A block of the docs is a fenced piece of text with its language.
type block struct {
	language string
	line     int // of the fence
	lines    []string
}

// unrun are the languages of commands that no test can run, with the reason.
var unrun = map[string]string{
	"console-network": "needs the network or an account",
	"console-gpu":     "needs a GPU",
	"console-hours":   "takes hours",
	"console-forever": "runs until it is stopped",
	"console-root":    "changes the system",
	"console-trial":   "is run by make trial, on a bare Debian",
}

// mostUnrun is how many blocks may go untested, over all pages.
const mostUnrun = 16

// Every command in the docs is run, page by page and in order, in a copy of the
// repository with the program on PATH; the output that a page shows must be in
// the real one, up to numbers and hashes.
func TestCommandsOfTheDocsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command of the docs; leave -short out to run it")
	}
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	left := 0
	for _, page := range append(pages, "../../../README.md") {
		blocks := readBlocks(t, page)
		ran := false
		for _, b := range blocks {
			if unrun[b.language] != "" && b.language != "console-trial" {
				left++
			}
			if strings.HasPrefix(b.language, "console-") && unrun[b.language] == "" {
				t.Errorf("%s:%d: no reason is known for %s", page, b.line, b.language)
			}
			ran = ran || b.language == "console"
		}
		if !ran {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) { runPage(t, blocks) })
	}
	if left > mostUnrun {
		t.Errorf("%d blocks are not run, want at most %d", left, mostUnrun)
	}
}

// runPage runs the console blocks of a page in a sandbox of its own.
func runPage(t *testing.T, blocks []block) {
	dir := sandbox(t)
	t.Cleanup(func() { stopAll(t, dir) })
	for _, b := range blocks {
		switch _, name, isFile := strings.Cut(b.language, " "); { // "yaml demo.yaml" is the file demo.yaml
		case isFile:
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(b.lines, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		case b.language == "console":
			runBlock(t, dir, b)
		}
	}
}

// stopAll stops the processes that a page left running and keeps the numbers of
// in files.
func stopAll(t *testing.T, dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && pid > 1 && syscall.Kill(pid, syscall.SIGTERM) == nil {
			t.Logf("stopped %d", pid)
		}
	}
}

// runBlock runs the lines that begin with "$ " and looks for the others in
// their output.
func runBlock(t *testing.T, dir string, b block) {
	t.Helper()
	for i := 0; i < len(b.lines); {
		command, ok := strings.CutPrefix(b.lines[i], "$ ")
		if !ok {
			t.Errorf("line %d: output without a command: %q", b.line+1+i, b.lines[i])
			return
		}
		at := b.line + 1 + i
		for i++; strings.HasSuffix(command, "\\") && i < len(b.lines); i++ {
			command = strings.TrimSuffix(command, "\\") + strings.TrimSpace(b.lines[i])
		}
		output := shell(t, dir, at, command)
		for ; i < len(b.lines) && !strings.HasPrefix(b.lines[i], "$ "); i++ {
			want := rough(b.lines[i])
			if want != "" && want != "..." && output != notRun && !strings.Contains(output, want) {
				t.Errorf("line %d: %q is not in the output of %q:\n%s", b.line+1+i, want, command, output)
			}
		}
	}
}

// notRun is the output of a command that was left out.
const notRun = "(not run)"

// shell runs a command and returns its output, roughly.
func shell(t *testing.T, dir string, line int, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if rest, ok := strings.CutPrefix(command, "make "); ok {
		command = "make -n " + rest // that there is such a target: building takes minutes, and other tests do it
	}
	c := exec.CommandContext(ctx, "bash", "-c", "set -eo pipefail; "+command)
	c.Dir = dir
	if python := os.Getenv("LACUNA_PYTHON"); python != "" {
		c.Env = append(os.Environ(), "PATH="+filepath.Dir(python)+":"+os.Getenv("PATH"))
	} else if strings.HasPrefix(command, "python3") {
		t.Logf("line %d is not run: LACUNA_PYTHON names no Python with netCDF4", line)
		return notRun
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	began := time.Now()
	if err := c.Run(); err != nil {
		t.Fatalf("line %d: %s: %v\n%s", line, command, err, out.String())
	}
	t.Logf("%v: %s", time.Since(began).Round(time.Second/10), command)
	return rough(out.String())
}

var (
	hashes  = regexp.MustCompile(`\b[0-9a-f]{10,64}\b`)
	numbers = regexp.MustCompile(`[0-9]+([.,:][0-9]+)*`)
	blanks  = regexp.MustCompile(`[ \t]+`)
)

// rough blurs numbers and hashes, which differ from run to run.
func rough(text string) string {
	text = hashes.ReplaceAllString(text, "N")
	text = numbers.ReplaceAllString(text, "N")
	return strings.TrimSpace(blanks.ReplaceAllString(text, " "))
}

// topEntries returns the names of the files and folders at the top of the repository, but
// for those of git and make. Another program lists them: go test runs a test again when a
// folder that it has read changes, and git changes this one even by its status.
func topEntries(t *testing.T, repository string) []string {
	t.Helper()
	out, err := exec.Command("ls", "-A", repository).Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return slices.Contains([]string{".git", ".cache", "bin", "var"}, name)
	})
}

// sandbox returns a copy of the repository with the program in bin/ and the
// real data beside it, where there are any.
func sandbox(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "lacuna")
	repository, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range topEntries(t, repository) {
		source := filepath.Join(repository, name)
		data, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		} else if info, other := os.Stat(source); other == nil && info.IsDir() {
			err = os.CopyFS(filepath.Join(dir, name), os.DirFS(source))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	program, err := exec.LookPath("lacuna")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program) // a copy: make build writes over it
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "bin/lacuna"), data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(repository, "../shared"), filepath.Join(top, "shared")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readBlocks returns the fenced blocks of a page.
func readBlocks(t *testing.T, page string) []block {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	open := false
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimRight(line, "\n")
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !open:
			all, open = append(all, block{language: language, line: number}), true
		case fence:
			open = false
		case open:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
	return all
}

// The list of commands is made from the commands.
func TestCommandReferenceIsTheCode(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\n**Which commands are there, and what do their exit statuses mean?** Made from the code by `go test ./daemon/cmd/lacuna -run Reference -update-docs`; a test compares. `lacuna COMMAND --help` and\n`man lacuna` tell the rest. Progress and logs go to standard error, results to standard output; `--json` prints them for programs.\n\n| command | what it does | exit status |\n|---|---|---|\n")
	for _, c := range rootCommand().Commands() {
		listCommand(&b, c, "lacuna", "")
	}
	path := "../../../docs/commands.md"
	if *updateDocs {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the code says; run go test ./daemon/cmd/lacuna -run Reference -update-docs (%v)", path, err)
	}
}

func listCommand(b *strings.Builder, c *cobra.Command, parent, status string) {
	if c.Hidden || !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if _, after, ok := strings.Cut(c.Long, "Exit status: "); ok {
		paragraph, _, _ := strings.Cut(after, "\n\n")
		status = strings.Join(strings.Fields(paragraph), " ")
	}
	if len(c.Commands()) == 0 || c.Runnable() {
		cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
		fmt.Fprintf(b, "| `%s %s` | %s | %s |\n", parent, cell(c.Use), cell(c.Short), cell(status))
	}
	for _, sub := range c.Commands() {
		listCommand(b, sub, parent+" "+c.Name(), status)
	}
}
