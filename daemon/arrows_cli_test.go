package daemon

import (
	"slices"
	"strings"
	"testing"
)

// The packages of the commands, from those that know none of the others to the
// program, which puts them together. Each may import those of its row.
var cliMap = []struct{ folder, imports string }{
	{"daemon/cli", ""},
	{clitest, ""},
	{"daemon/cli/input", "daemon/cli"},
	{"daemon/cli/service", "daemon/cli"},
	{"daemon/cli/files", "daemon/cli daemon/cli/input"},
	{"daemon/cli/models", "daemon/cli daemon/cli/input"},
	{"daemon/cli/measure", "daemon/cli daemon/cli/input"},
	{"daemon/cmd/lacuna", "daemon/cli daemon/cli/service daemon/cli/files daemon/cli/models daemon/cli/measure"},
}

// clitest may be imported by every test of a command, and by nothing else.
const clitest = "daemon/cli/clitest"

// isCommand reports whether a package is of the command line, which knows the
// daemon and all of its rooms.
func isCommand(folder string) bool {
	return folder == "daemon/cli" || strings.HasPrefix(folder, "daemon/cli/") || strings.HasPrefix(folder, "daemon/cmd/")
}

func TestArrowsOfTheCommandsAreThoseOfTheMap(t *testing.T) {
	allowed, used := map[string][]string{}, map[string]bool{}
	for at, row := range cliMap {
		allowed[row.folder] = strings.Fields(row.imports)
		for _, to := range allowed[row.folder] {
			if !slices.ContainsFunc(cliMap[:at], func(r struct{ folder, imports string }) bool { return r.folder == to }) {
				t.Errorf("the map lets %s import %s, which is not above it", row.folder, to)
			}
		}
	}
	for _, a := range arrowsBelow(t, "..") {
		if _, known := allowed[a.from]; isCommand(a.from) && !known {
			t.Errorf("%s: %s is not on the map", a.at, a.from)
		}
		if !isCommand(a.to) || a.to == a.from || a.to == clitest && a.test {
			continue
		}
		used[a.from+" "+a.to] = true
		if !slices.Contains(allowed[a.from], a.to) {
			t.Errorf("%s: %s must not import %s", a.at, a.from, a.to)
		}
	}
	for _, row := range cliMap {
		for _, to := range allowed[row.folder] {
			if !used[row.folder+" "+to] {
				t.Errorf("the map lets %s import %s, which it does not: take the arrow off", row.folder, to)
			}
		}
	}
}
