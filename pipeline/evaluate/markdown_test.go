package evaluate

import (
	"os"
	"path/filepath"
	"testing"

	"lacuna/pipeline/skill"
)

func ptr(v float64) *float64 { return &v }

// Written out by hand from the fields below: a reader must find every number
// in its column, and bold only where chance does not explain the difference.
func TestATableReadsAsWritten(t *testing.T) {
	r := Results{
		Table: "example", Dataset: "a sea", Mode: "past", Side: 64, Cases: 120, Reference: "network",
		Rows: []Row{
			{
				Method: "network", Seeds: 3, MSE: Spread{0.12345, 0.0012}, Calls: 1, CoverageIn: &skill.Interval{Low: 0.88, High: 0.9123},
				Scores: Columns{
					GapMSE: ptr(0.14), PSNR: ptr(27.125), RMSEPhysical: ptr(0.31234), BiasPhysical: ptr(-0.00123), CBGD: ptr(0.97), CBGDError: ptr(0.03),
					CRPS: ptr(0.1824), SpreadSkill: ptr(1.02), Coverage90: ptr(0.899), Resolved: ptr(12.34),
				},
				Truth: &TruthScore{Overlay: 0.1, OverlayIn: &skill.Interval{Low: 0.09, High: 0.11}, Gaps: 0.125},
				Masks: &MaskScore{ContextShare: 0.5, SD: 0.25, Draws: 16},
			},
			{
				Method: "worse", Seeds: 1, MSE: Spread{Mean: 0.2},
				Difference:     &skill.Difference{Mean: 0.0765, Base: 0.1235, Relative: 0.62, Interval: skill.Interval{Low: 0.05, High: 0.1}},
				CRPSDifference: &skill.Difference{Mean: -0.015, Relative: -0.03, Interval: skill.Interval{Low: -0.02, High: -0.01}},
			},
			{
				Method: "alike", Seeds: 1, MSE: Spread{Mean: 0.124},
				Difference: &skill.Difference{Mean: 0.0005, Base: 0.1, Relative: 0.005, Interval: skill.Interval{Low: -0.01, High: 0.011}},
			},
		},
		Notes: []string{"A note."},
	}
	want, err := os.ReadFile(filepath.Join("testdata", "table.md"))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Markdown(); got != string(want) {
		t.Errorf("the table reads\n%s\nwant\n%s", got, want)
	}
}

func TestSeedsArePooledBeforeTheyAreCompared(t *testing.T) {
	e := exam(t, "past")
	ref, err := e.Judge(t.Context(), Climatology(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	better, worse := ref, ref
	better.Method, worse.Method, worse.Seed = "two seeds", "two seeds", 2
	better.Losses.Squared, worse.Losses.Squared = scaled(ref.Losses.Squared, 0.5), scaled(ref.Losses.Squared, 1.5)
	r, err := NewResults("seeds", e, "climatology", []Verdict{ref, better, worse})
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Rows[1].Difference; d == nil || d.Mean > 1e-9 || d.Mean < -1e-9 {
		t.Errorf("seeds half as bad and half as bad again differ from the reference by %+v", d)
	}
}

func scaled(losses []skill.Loss, by float64) []skill.Loss {
	out := append([]skill.Loss(nil), losses...)
	for i := range out {
		out[i].Sum *= by
	}
	return out
}
