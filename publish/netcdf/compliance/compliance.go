// Package compliance lets tests ask an independent judge, the IOOS compliance
// checker, whether a product follows CF-1.8 and ACDD-1.3.
//
// Check fails a test for every finding of the checker at its normal criteria,
// errors and warnings of CF, highly recommended and recommended attributes of
// ACDD, but for those that Accepted explains. The checker is a Python program
// (compliance-checker 6.1.0 on PyPI); where it is not installed the test is
// skipped with a message that says so.
//
// Package compliance knows nothing of how products are made.
package compliance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/internal/checkout"
)

// PythonVariable names the environment variable that holds the path of a
// Python interpreter which has the checker. Without it that of the virtual
// environment .cache/venv under the root of the checkout is taken.
const PythonVariable = "LACUNA_PYTHON"

// Check runs the checker once over all paths and reports its findings.
func Check(t testing.TB, paths ...string) {
	t.Helper()
	for _, f := range Findings(t, paths...) {
		if Accepted(f) == "" {
			t.Errorf("%s: %s: %s: %s", filepath.Base(f.Path), f.Standard, f.Check, f.Message)
		}
	}
}

// Finding is a complaint of the checker about a file.
type Finding struct {
	Path     string
	Standard string // cf:1.8 or acdd:1.3
	Check    string
	Message  string
}

// Accepted returns the reason for which a finding is no fault of a product, ""
// if it is one.
func Accepted(f Finding) string {
	switch {
	case f.Standard == "acdd:1.3" && f.Message == "standard_name" && strings.Contains(f.Check, "_uncertainty"):
		return "CF has no standard name for the standard deviation of a logarithm, and a made-up one would be an error"
	case f.Standard == "acdd:1.3" && f.Message == "standard_name" && (strings.Contains(f.Check, "_distance_") || strings.Contains(f.Check, "_reliability")):
		return "CF has no standard name for how far observations are, or how often a pixel was learned from"
	case f.Standard == "acdd:1.3" && f.Message == "standard_name" && strings.Contains(f.Check, `"sses_`):
		return "the errors of the input keep its attributes, and CF has no standard name for them"
	case f.Standard == "acdd:1.3" && strings.HasPrefix(f.Message, "Date time mismatch between time_coverage_"):
		return "the coverage is that of the bounds of time, and the checker compares it with the instants"
	case f.Standard == "cf:1.8" && strings.Contains(f.Message, "months or years is not recommended"):
		return "the time coordinate is that of the input, to the bit"
	case f.Standard == "cf:1.8" && strings.Contains(f.Message, "time (T), y (A), x (A)"):
		return "the dimensions are in the recommended order, but the input has no axes along rows and columns of its bent grid by which the checker could tell"
	}
	return ""
}

// Findings runs the checker once over all paths and returns everything it
// finds, accepted or not.
func Findings(t testing.TB, paths ...string) []Finding {
	t.Helper()
	python := Python(t)
	checker := filepath.Join(filepath.Dir(python), "compliance-checker") // pip puts it beside the interpreter
	if _, err := os.Stat(checker); err != nil {
		t.Skipf("%s has no compliance-checker: pip install compliance-checker==6.1.0 into it to run this test", python)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	args := append([]string{checker, "-t", "cf:1.8", "-t", "acdd:1.3", "-f", "json_new", "-o", report}, paths...)
	var output bytes.Buffer
	cmd := exec.Command(python, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	runErr := cmd.Run() // 1 also when there are findings
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("compliance checker made no report: %v, %v\n%s", runErr, err, &output)
	}
	findings, err := parse(text, len(paths))
	if err != nil {
		t.Fatalf("read report of the compliance checker: %v\n%s", err, &output)
	}
	return findings
}

// Python returns the interpreter to use, or skips the test.
func Python(t testing.TB) string {
	t.Helper()
	if python := os.Getenv(PythonVariable); python != "" {
		return python
	}
	python := filepath.Join(checkout.Root(t), ".cache", "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skipf("no Python for this test: set %s, or run make test, which installs one in .cache/venv", PythonVariable)
	}
	return python
}

// parse reads a report on n files, and refuses one that leaves a file or a
// standard out.
func parse(text []byte, n int) ([]Finding, error) {
	const normal = 2 // weight of the least finding that counts at normal criteria
	var report map[string]map[string]struct {
		All []struct {
			Name     string   `json:"name"`
			Weight   int      `json:"weight"`
			Value    [2]int   `json:"value"` // points scored and possible
			Messages []string `json:"msgs"`
		} `json:"all_priorities"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	if len(report) != n {
		return nil, fmt.Errorf("report is on %d files, want %d", len(report), n)
	}
	var findings []Finding
	for path, standards := range report {
		for _, standard := range []string{"cf:1.8", "acdd:1.3"} {
			checks := standards[standard].All
			if len(checks) == 0 {
				return nil, fmt.Errorf("%s was not checked against %s", path, standard)
			}
			for _, c := range checks {
				if c.Weight < normal || c.Value[0] == c.Value[1] {
					continue
				}
				for _, m := range append(c.Messages, make([]string, max(0, 1-len(c.Messages)))...) {
					findings = append(findings, Finding{Path: path, Standard: standard, Check: c.Name, Message: m})
				}
			}
		}
	}
	return findings, nil
}
