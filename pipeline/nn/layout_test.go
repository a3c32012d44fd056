package nn

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestInitialWeightsDependOnSeedAndNameOnly(t *testing.T) {
	var a, b Layout
	newConv(scope{layout: &a}.in("one"), 4, 8, 3)
	newConv(scope{layout: &a}.in("two"), 4, 8, 3)
	newConv(scope{layout: &b}.in("zero"), 16, 4, 1) // another layer before
	newConv(scope{layout: &b}.in("two"), 4, 8, 3)
	of := func(l *Layout, i int, seed uint64) []float32 {
		p := l.Params[i]
		return l.Init(seed)[p.Offset : p.Offset+p.Size()]
	}
	if !slices.Equal(of(&a, 1, 7), of(&b, 1, 7)) {
		t.Error("a weight changed because another layer was added before it")
	}
	if slices.Equal(of(&a, 0, 7), of(&a, 1, 7)) {
		t.Error("two layers start with the same weights")
	}
	if slices.Equal(of(&a, 0, 7), of(&a, 0, 8)) {
		t.Error("two seeds start with the same weights")
	}
	// 288 numbers: five standard errors of a standard deviation are 21 %.
	if r := rms(of(&a, 0, 7)) * math.Sqrt(4*9); math.Abs(r-1) > 0.21 {
		t.Errorf("initial weights are %.3f times as large as those that keep magnitudes", r)
	}
}

func TestLayoutCoversTheVectorOnceWithoutGaps(t *testing.T) {
	for name, n := range backbones(t) {
		at, seen := 0, map[string]bool{}
		for _, p := range n.Layout().Params {
			if p.Offset != at {
				t.Errorf("%s: %s starts at %d, want %d", name, p.Name, p.Offset, at)
			}
			if seen[p.Name] {
				t.Errorf("%s: two weights are called %s", name, p.Name)
			}
			seen[p.Name] = true
			at += p.Size()
		}
		if at != n.Layout().Size {
			t.Errorf("%s: weights end at %d of %d", name, at, n.Layout().Size)
		}
	}
}

func TestCheckNamesTheFirstDifference(t *testing.T) {
	var l Layout
	s := scope{layout: &l}
	s.constant("a", 0, 2, 3)
	s.constant("b", 0, 4)
	tests := []struct {
		name  string
		names []string
		dims  [][]int
		want  string
	}{
		{"same", []string{"a", "b"}, [][]int{{2, 3}, {4}}, ""},
		{"shape", []string{"a", "b"}, [][]int{{2, 3}, {5}}, "weight b has shape [5], want [4]"},
		{"name", []string{"x", "b"}, [][]int{{2, 3}, {4}}, "weight 0 is x [2 3], want a [2 3]"},
		{"missing", []string{"a"}, [][]int{{2, 3}}, "weight b [4] is missing"},
		{"more", []string{"a", "b", "c"}, [][]int{{2, 3}, {4}, {1}}, "weight c [1] is not in this network"},
	}
	for _, tt := range tests {
		err := l.Check(tt.names, tt.dims)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Check() = %v, want %q", tt.name, err, tt.want)
		}
	}
}
