package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// A reader knows after the first lines whether a page is the right one: they ask its
// question and answer it.
func TestEveryPageBeginsWithItsQuestion(t *testing.T) {
	for _, page := range docPages(t, "docs/*.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.SplitN(string(data), "\n\n", 3)
		if !strings.HasPrefix(parts[0], "# ") || len(parts) < 3 {
			t.Errorf("%s does not begin with a title", filepath.Base(page))
			continue
		}
		question, answer, asked := strings.Cut(parts[1], "?")
		if !asked || len(question) > 200 || len(strings.Fields(answer)) < 5 {
			t.Errorf("%s: the first paragraph is no question with its answer: %q", filepath.Base(page), parts[1])
		}
	}
}

// Links between the pages lead somewhere, to the heading if they name one.
func TestLinksOfTheDocsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	headings := map[string][]string{}
	for _, page := range docPages(t, "docs/*.md", "*.md", "python/*.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
				continue
			}
			if m[2] == "" || !strings.HasSuffix(target, ".md") {
				continue
			}
			if headings[target] == nil {
				headings[target] = headingsOf(t, target)
			}
			if !slices.Contains(headings[target], m[2]) {
				t.Errorf("%s: %s has no heading #%s", filepath.Base(page), filepath.Base(target), m[2])
			}
		}
	}
}

// headingsOf returns the headings of a page as addresses have them: lower case,
// hyphens for blanks, no other marks.
func headingsOf(t *testing.T, page string) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			all = append(all, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
					return r
				}
				return -1
			}, title))
		}
	}
	return all
}

// docPages returns the pages of some patterns, which must each have one.
func docPages(t *testing.T, patterns ...string) []string {
	t.Helper()
	var pages []string
	for _, pattern := range patterns {
		var found []string
		var err error
		if filepath.Dir(pattern) == "." {
			found, err = topPages(t, pattern)
		} else {
			found, err = filepath.Glob(filepath.Join(repositoryTop, pattern))
		}
		if err != nil || len(found) == 0 {
			t.Fatalf("no page is %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// topPages returns those at the top of the repository, see topEntries.
func topPages(t *testing.T, pattern string) (pages []string, err error) {
	t.Helper()
	for _, name := range topEntries(t, repositoryTop) {
		is, err := filepath.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if is {
			pages = append(pages, filepath.Join(repositoryTop, name))
		}
	}
	return pages, nil
}

// What no test runs is at least there: commands, flags, targets and units have the
// names that the pages give them.
func TestCommandsThatAreNotRunAreKnown(t *testing.T) {
	pages := docPages(t, "docs/*.md", "*.md", "python/*.md")
	remedyRoom(t)
	looked := 0
	for _, page := range pages {
		for _, b := range readBlocks(t, page) {
			if unrun[b.language] == "" && b.language != "sh" {
				continue
			}
			for i, line := range b.lines {
				line, typedHere := strings.CutPrefix(line, "$ ")
				if !typedHere && b.language != "sh" {
					continue // output, or the rest of a command
				}
				line, _, _ = strings.Cut(line, " #")
				for _, command := range commandEnds.Split(line, -1) {
					ok, err := asKnown(command)
					if ok {
						looked++
					}
					if err != nil {
						t.Errorf("%s:%d: %q: %v", filepath.Base(page), b.line+1+i, command, err)
					}
				}
			}
		}
	}
	if looked < 25 {
		t.Errorf("only %d commands were looked at: the search is broken", looked)
	}
}

// commandEnds are what a shell writes between commands.
var commandEnds = regexp.MustCompile(`&&|\|\|?|;|\$\(`)

// asKnown reports whether a text is a command that can be looked up, and why it is not
// known.
func asKnown(text string) (looked bool, err error) {
	text = strings.TrimLeft(strings.TrimSpace(text), "!( ")
	text, _, _ = strings.Cut(text, ">") // where the output goes
	fields := strings.Fields(text)
	for len(fields) > 0 && (strings.Contains(fields[0], "=") || fields[0] == "until" || fields[0] == "timeout") {
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return false, nil
	}
	switch filepath.Base(fields[0]) {
	case "lacuna":
		return true, known(fields[1:])
	case "make":
		if len(fields) > 2 && fields[1] == "-C" { // seen from beside the checkout
			fields = fields[2:]
		}
		return true, makes(fields[1:])
	case "systemctl":
		return true, managesAny(fields)
	}
	return false, nil
}

// managesAny is manages for units of ours; others are the system's.
func managesAny(fields []string) error {
	if !strings.Contains(strings.Join(fields, " "), "lacuna") {
		return nil
	}
	return manages(slices.DeleteFunc(slices.Clone(fields), func(f string) bool {
		return f == "-p" || f == "-s" || f == "KILL" || strings.Contains(f, "State") || f == "StatusText" || f == "NRestarts" || f == "Result"
	}))
}
