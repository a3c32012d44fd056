package roofline

import (
	"strings"
	"testing"
)

// The limit of a stage is the part of the machine that it needs longest, and a
// release whose share was larger is told of.
func TestShareIsOfTheLargestLimitAndLossesAreTold(t *testing.T) {
	m := Machine{Cores: 2, Memory: 10e9, Flops: 2e9, Hashing: 1e9, Disk: 0.5e9}
	for _, tt := range []struct {
		stage  stage
		within string
		share  float64 // of one second
	}{
		{stage{name: "copies", bytes: 5e9, flops: 1e8}, "memory", 0.5},
		{stage{name: "solves", bytes: 1e8, flops: 1e9}, "arithmetic", 0.5},
		{stage{name: "hashes", bytes: 1e9, hash: 2.5e8}, "sha256", 0.25},
	} {
		got := m.judge(tt.stage, took{cpu: 1, wall: 2})
		if got.Within != tt.within || got.Share != tt.share {
			t.Errorf("%s: %.3f of %s, want %.3f of %s", tt.stage.name, got.Share, got.Within, tt.share, tt.within)
		}
	}
	now := Result{Grid: "4x4", Machine: m, Stages: []Stage{{Name: "OI", Share: 0.5}, {Name: "reading", Share: 0.97}}}
	last := Result{Grid: "4x4", Stages: []Stage{{Name: "OI", Share: 0.8}, {Name: "reading", Share: 1}}}
	var out strings.Builder
	if err := now.print(&out, last); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "OI has become slower: 38 %") || strings.Contains(out.String(), "reading has become slower") {
		t.Errorf("%s\nwant OI alone to be slower", out.String())
	}
	out.Reset()
	if last.Grid = "8x8"; now.print(&out, last) != nil || strings.Contains(out.String(), "slower") {
		t.Errorf("%s\nanother grid was compared", out.String())
	}
}
