package trial

import (
	"strings"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
)

func TestATrialSaysWhereTheTimeOfEveryTierWent(t *testing.T) {
	e := enginetest.Open(t)
	cfg := DefaultConfig()
	cfg.Height, cfg.Width, cfg.Days, cfg.Size = 24, 32, 2, nn.Tiny
	cfg.Network.Members = 1
	report, err := Run(t.Context(), cfg, infer.Device{Backend: e}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"DINEOF", "optimal interpolation", "network, compiled anew", "fast", "standard"}
	if len(report.Rows) != len(want) {
		t.Fatalf("rows %v, want %v", report.Rows, want)
	}
	for i, row := range report.Rows {
		parts := row.Analysis + row.Look + row.Members
		if row.Name != want[i] || !(row.Seconds > 0) || parts > row.Seconds {
			t.Errorf("row %d is %+v: want %q, and parts that do not exceed the whole", i, row, want[i])
		}
		if drawn := row.Members > 0; drawn != (row.Name == "standard") {
			t.Errorf("row %d is %+v: members are drawn by standard only", i, row)
		}
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "standard") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}
