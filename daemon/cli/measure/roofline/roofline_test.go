package roofline

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/ingest/ingesttest"
	"lacuna/pipeline/nn"
)

func TestMain(m *testing.M) {
	ingesttest.Decode()
	os.Exit(m.Run())
}

// The limit of a stage is the part of the machine that it needs longest, and a
// release whose share was larger is told of.
func TestShareIsOfTheLargestLimitAndLossesAreTold(t *testing.T) {
	m := Machine{Cores: 2, Memory: 10e9, Flops: 2e9, Hashing: 1e9, Disk: 0.5e9, Products: 40e9}
	for _, tt := range []struct {
		stage  stage
		within string
		share  float64 // of one second
	}{
		{stage{name: "copies", bytes: 5e9, flops: 1e8}, "memory", 0.5},
		{stage{name: "solves", bytes: 1e8, flops: 1e9}, "arithmetic", 0.5},
		{stage{name: "hashes", bytes: 1e9, hash: 2.5e8}, "sha256", 0.25},
		{stage{name: "network", bytes: 9e9, products: 2e10}, "products", 0.5},
		{stage{name: "network on a GPU", products: 2e10, device: true}, "products", 0.25},
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

// Every stage is measured, takes longer than its limit, and none is missing: networks too.
func TestEveryStageIsMeasuredAgainstItsLimit(t *testing.T) {
	enginetest.Open(t) // skips where there is none
	n, err := openNetworks(engine.ORT, nn.Tiny, engine.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(96, 128, t.TempDir(), []string{self, "decode"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.measure(t.Context(), n, 3)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range r.Stages {
		names = append(names, s.Name)
		// A probe that is disturbed may come out below the machine, not ten times below it.
		if s.Limit <= 0 || s.CPU <= 0 || s.Share <= 0 || s.Share > 10 {
			t.Errorf("%s took %.4f s of %.4f at best, a share of %.3f", s.Name, s.CPU, s.Limit, s.Share)
		}
	}
	want := []string{"hashing", "reading", "OI", "writing", "publishing", "fast tier, a window", "members, a step"}
	if !slices.Equal(names, want) {
		t.Errorf("stages are %q, want %q", names, want)
	}
	// A member's step takes as many planes and more, and one output in place of two.
	fast, step := r.Stages[5].Flops, r.Stages[6].Flops
	if fast <= 0 || step < fast || step > 1.1*fast {
		t.Errorf("a window takes %.0f operations and a step of members %.0f", fast, step)
	}
}

func TestAProfileNamesTheFunctionsThatTakeMost(t *testing.T) {
	at := func(name string, calls string, nanoseconds int64) *profile.Sample {
		line := func(name string) *profile.Location {
			return &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}}
		}
		return &profile.Sample{Location: []*profile.Location{line(name), line(calls)}, Value: []int64{1, nanoseconds}}
	}
	got := functionsOf(&profile.Profile{Sample: []*profile.Sample{
		at("solve", "fill", 50), at("cut", "fill", 16), at("solve", "again", 29), at("rare", "fill", 1), at("", "fill", 4),
	}})
	want := []Function{{"solve", 0.79}, {"cut", 0.16}, {"code that is not Go", 0.04}}
	if !slices.Equal(got, want) {
		t.Errorf("functions are %+v", got)
	}
}
