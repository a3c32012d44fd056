// Package trial_test holds the page of the three walks to their scripts.
package trial_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// steps finds the title and the commands of a step.
var steps = regexp.MustCompile(`(?ms)^ *step "([^"]+)" <<'SH'\n(.*?)^SH$`)

// The page shows the commands of the scripts as they are typed, in their order; what
// they print changes from machine to machine.
func TestThePageHasTheCommandsOfTheWalks(t *testing.T) {
	data, err := os.ReadFile("../../docs/trial.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := strings.Cut(string(data), "<!-- walks")
	if !found {
		t.Fatal("docs/trial.md does not say where the walks begin")
	}
	sections := strings.Split(page, "\n## ")[1:]
	walks := []string{"student", "operator", "modeller"}
	if len(sections) != len(walks) {
		t.Fatalf("the page has %d walks, want %d: run make trial PAGE=docs/trial.md", len(sections), len(walks))
	}
	for i, walk := range walks {
		want, got := scripted(t, walk, sections[i]), shown(sections[i])
		if len(want) < 3 {
			t.Fatalf("%s.sh has %d steps: the search is broken", walk, len(want))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the page has another walk of the %s than %s.sh: run make trial PAGE=docs/trial.md\non the page\n%s\nin the script\n%s",
				walk, walk, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// scripted returns the titles and the commands of a script, but for the steps that a
// page says were not walked.
func scripted(t *testing.T, walk, page string) []string {
	t.Helper()
	data, err := os.ReadFile(walk + ".sh")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range steps.FindAllStringSubmatch(string(data), -1) {
		if strings.Contains(page, "\nNot walked this time: "+m[1]+".\n") {
			continue
		}
		all = append(all, "### "+m[1])
		for command := range strings.SplitSeq(strings.TrimSpace(m[2]), "\n\n") {
			all = append(all, "$ "+command)
		}
	}
	return all
}

// shown returns the titles and the commands of a section of the page. A command that
// goes on over lines ends where its last word is that of the text it was given.
func shown(section string) []string {
	var all []string
	until := "" // the word that ends the text of a command
	for line := range strings.Lines(section) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case until != "":
			all[len(all)-1] += "\n" + line
			if line == until {
				until = ""
			}
		case strings.HasPrefix(line, "### "):
			all = append(all, line)
		case strings.HasPrefix(line, "$ "):
			all = append(all, line)
			if m := given.FindStringSubmatch(line); m != nil {
				until = m[1]
			}
		}
	}
	return all
}

// given finds the word that ends the text that a command is given.
var given = regexp.MustCompile(`<<'?([A-Z]+)'?$`)

// A walk ends at the first command that fails, and says which.
func TestAWalkStopsAtTheFirstFailure(t *testing.T) {
	script := `. ./steps.sh
step "First" <<'SH'
cd /

pwd

false | cat

echo never
SH
echo never`
	out, err := exec.Command("bash", "-c", script).CombinedOutput()
	if err == nil || strings.Contains(string(out), "\nnever") {
		t.Errorf("it went on after a failure: %v\n%s", err, out)
	}
	for _, want := range []string{"### First\n", "$ pwd\n/\n", "This failed: false | cat"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the walk does not say %q:\n%s", want, out)
		}
	}
}

func TestABarHoldsByTheClockUnlessTheMachineIsBusy(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		fails        bool
	}{
		{"in time", `bar x 60`, false},
		{"late", `began=$((${EPOCHREALTIME%.*} - 100)).000000; bar x 60`, true},
		{"late on a busy machine", `began=$((${EPOCHREALTIME%.*} - 100)).000000; BUSY=1; bar x 60`, false},
		{"too much to do on any machine", `began=$((${EPOCHREALTIME%.*} - 100)).000000; BUSY=1; processor() { echo 999; }; nproc() { echo 2; }; bar x 60`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := exec.Command("bash", "-c", ". ./steps.sh; "+tt.script).CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), "the bar is 60 s") {
				t.Errorf("it ended with %v, fails is to be %v:\n%s", err, tt.fails, out)
			}
		})
	}
}
