package ops

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whoever has an alarm finds its symptom in the handbook.
func TestEveryAlarmHasASymptom(t *testing.T) {
	page, err := os.ReadFile("../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("alerts/lacuna.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(string(page), -1) {
		known[m] = true
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) < 30 {
		t.Fatalf("%d alerts were found", len(alerts))
	}
	for _, m := range alerts {
		if !known[m[1]] {
			t.Errorf("docs/troubleshooting.md has no symptom of %s", m[1])
		}
	}
	bracketed := ""
	for _, m := range regexp.MustCompile(`\[([a-z, ]+)\] \|`).FindAllStringSubmatch(string(page), -1) {
		bracketed += " " + strings.ReplaceAll(m[1], ",", "") + " "
	}
	names := 0
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`Name:\s+"([a-z]+)",\s*(?:Subject|Summary)`).FindAllStringSubmatch(string(code), -1) {
			names++
			if !strings.Contains(bracketed, " "+m[1]+" ") {
				t.Errorf("docs/troubleshooting.md has no symptom of the alarm %s of %s", m[1], file)
			}
		}
	}
	if names < 20 {
		t.Errorf("only %d alarms were found in the code", names)
	}
}
