// Package alerts_test checks the alert rules and the dashboard: that Prometheus
// reads them, that each rule fires where it should, and that the service
// exports every metric that they use.
package alerts_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	rulesFile     = "lacuna.rules.yaml"
	testsFile     = "lacuna.rules.test.yaml"
	dashboardFile = "lacuna.dashboard.json"
)

type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(read(t, rulesFile), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func TestPrometheusAcceptsTheRulesAndTheyFireWhereTheyShould(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian package prometheus), so the rules are not tried")
	}
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", testsFile}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestEveryRuleIsTestedBothWays(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Name   string `yaml:"alertname"`
				Expect []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(read(t, testsFile), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			fires[c.Name] = fires[c.Name] || len(c.Expect) > 0
			silent[c.Name] = silent[c.Name] || len(c.Expect) == 0
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: tested to fire %v, to be silent %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

func TestEveryRuleHasASummaryAndARemedy(t *testing.T) {
	for _, r := range rules(t) {
		if r.Annotations["summary"] == "" || r.Annotations["action"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s lacks a summary, an action or a severity", r.Alert)
		}
	}
}

// metricName finds the names of metrics in an expression.
var metricName = regexp.MustCompile(`\b(?:lacuna|process|go)_[a-z0-9_]+\b`)

// shown reports whether the service shows a metric. The names of our own are a
// golden file, which the tests of package ops compare with a scrape; GPUs are
// shown where there are some.
func shown(t *testing.T, name string) bool {
	promised := string(read(t, "../testdata/metrics.txt"))
	for _, ending := range []string{"", "_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name, ending); ok && strings.Contains(promised, "# TYPE "+base+" ") {
			return true
		}
	}
	elsewhere := []string{"process_resident_memory_bytes", "lacuna_gpu_busy_ratio", "lacuna_gpu_memory_used_bytes", "lacuna_gpu_memory_bytes"}
	return slices.Contains(elsewhere, name)
}

func TestRulesAndDashboardSpeakOfMetricsThatExist(t *testing.T) {
	var text strings.Builder
	for _, r := range rules(t) {
		text.WriteString(r.Expr + "\n")
	}
	text.WriteString(strings.Join(expressions(t), "\n"))
	found := metricName.FindAllString(text.String(), -1)
	if len(found) < 40 {
		t.Errorf("only %d metrics found: the pattern is wrong", len(found))
	}
	for _, name := range found {
		if !shown(t, name) {
			t.Errorf("%s is not shown at /metrics", name)
		}
	}
}

type dashboard struct {
	Title  string
	UID    string
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

func board(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func expressions(t *testing.T) []string {
	var all []string
	for _, p := range board(t).Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

func TestDashboardHasTheKeyFiguresAndPanelsDoNotOverlap(t *testing.T) {
	d := board(t)
	if d.UID == "" || d.Title == "" {
		t.Error("the dashboard has no uid or title")
	}
	all := strings.Join(expressions(t), "\n")
	for _, want := range []string{
		"lag_seconds", "queue_granules", "stage_duration", "coverage_ratio", "skill_mse", "publish_backlog", "disk_free", "ledger_bytes",
	} {
		if !strings.Contains(all, "lacuna_"+want) {
			t.Errorf("no panel shows %s", want)
		}
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q has an id that is taken, no title, no target or is too wide", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" {
					t.Fatalf("%q lies over %q", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
	}
}

// Grafana passes expressions to Prometheus with its variables filled in.
func TestPrometheusAcceptsTheExpressionsOfTheDashboard(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian package prometheus), so the expressions are not tried")
	}
	type recording struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var list []recording
	for i, expr := range expressions(t) {
		expr = strings.NewReplacer("$instance", ".*", "$dataset", ".*").Replace(expr)
		list = append(list, recording{Record: "panel:" + strings.Repeat("x", i+1), Expr: expr})
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": list}}})
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/rules.yaml" // JSON is YAML
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
