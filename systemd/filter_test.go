package systemd_test

import (
	"os/exec"
	"strings"
	"testing"
)

// settings reads the keys of a unit: every value of each, in their order.
func settings(unit string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(unit) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			all[key] = append(all[key], value)
		}
	}
	return all
}

// systemCalls returns the calls that lines of SystemCallFilter= allow, as
// systemd reads them: names and sets one after another, with ~ to take away.
// The sets are those of the systemd that is installed.
func systemCalls(t *testing.T, lines []string) map[string]bool {
	t.Helper()
	out, err := exec.Command("systemd-analyze", "syscall-filter", "--no-pager").Output()
	if err != nil {
		t.Skip("systemd-analyze, which knows the sets of system calls, is not installed (Debian package systemd)")
	}
	sets, set := map[string][]string{}, ""
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		switch {
		case name == "" || strings.HasPrefix(name, "#"):
		case !strings.HasPrefix(line, " "):
			set = name
		default:
			sets[set] = append(sets[set], name)
		}
	}
	allowed := map[string]bool{}
	var mark func(name string, on bool)
	mark = func(name string, on bool) {
		if !strings.HasPrefix(name, "@") {
			allowed[name] = on
			return
		}
		for _, member := range sets[name] {
			mark(member, on)
		}
	}
	mark("@default", true) // an allow list always has it
	for _, line := range lines {
		names, away := strings.CutPrefix(line, "~")
		for _, name := range strings.Fields(names) {
			mark(name, !away)
		}
	}
	return allowed
}
