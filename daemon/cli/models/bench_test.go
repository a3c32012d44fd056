package models

import (
	"encoding/json"
	"strings"
	"testing"

	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/infer/trial"
)

func TestBenchMeasuresTheTiersThatItIsAskedFor(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	c := benchCommand()
	var out strings.Builder
	c.SetOut(&out)
	c.SetErr(&strings.Builder{})
	c.SetArgs([]string{"--engine", "ort", "--size", "tiny", "--grid", "16x24", "--days", "1", "--tiers", "fast", "--json"})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var report trial.Report
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if n := len(report.Rows); n != 4 || report.Rows[3].Name != "fast" || report.Cells != 16*24 {
		t.Errorf("report is %+v, want four rows that end with fast", report)
	}
}

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	for _, args := range [][]string{{"--tiers", "slow"}, {"--size", "huge"}, {"--days", "99"}, {"--window", "3"}} {
		c := benchCommand()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(args)
		if err := c.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
