package onboard

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/intake"
)

var onboardingDay = time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)

func TestSkewnessOfKnownSets(t *testing.T) {
	nan := float32(math.NaN())
	if got := skewness([][]float32{{1, 2, nan, 3}, {2}}, nil); math.Abs(got) > 1e-12 {
		t.Errorf("a symmetric set has skewness %g", got)
	}
	if got := skewness([][]float32{{0, 0, 0, 1}}, nil); math.Abs(got-2/math.Sqrt(3)) > 1e-9 {
		t.Errorf("skewness %g, want %g", got, 2/math.Sqrt(3)) // Bernoulli, p = 1/4: (1-2p)/sqrt(p(1-p))
	}
	if got := skewness([][]float32{{-1, 1}}, math.Log10); !math.IsNaN(got) {
		t.Errorf("a negative value has a logarithm: %g", got)
	}
}

func TestDatasetNamesAreNames(t *testing.T) {
	for from, want := range map[string]string{
		"/data/Black Sea (CHL)": "black-sea--chl", "a.nc": "a", "///": "dataset", "20240301_x.nc": "20240301_x",
		strings.Repeat("x", 90): strings.Repeat("x", 62),
	} {
		if got := DatasetName(from); got != want {
			t.Errorf("DatasetName(%q) = %q, want %q", from, got, want)
		}
	}
}

func TestReasonsAreWrappedWhole(t *testing.T) {
	text := "one two three four five"
	lines := wrap(text, 9)
	if got := strings.Join(lines, " "); got != text {
		t.Errorf("wrap lost words: %q", got)
	}
	for _, l := range lines {
		if len(l) > 9 {
			t.Errorf("%q is longer than 9", l)
		}
	}
	if bytes.Contains(Onboarding{Now: onboardingDay, Archive: intake.DefaultArchive()}.Propose(), []byte("# \n")) {
		t.Error("an empty reason was written")
	}
}

func TestTheProposedSeaMaskHasTheReasonOfItsKind(t *testing.T) {
	for kind, want := range map[string]string{
		"granule": "mask of their own", "builtin": "the built-in one serves", "learned": "taken for water, more with every day",
	} {
		o := Onboarding{Now: onboardingDay, Archive: intake.DefaultArchive(), Sample: &Sample{SeaMask: kind}}
		text := strings.Join(strings.Fields(strings.ReplaceAll(string(o.Propose()), "#", "")), " ")
		if !strings.Contains(text, want) || !strings.Contains(text, "sea_mask: auto") {
			t.Errorf("%s: no %q in\n%s", kind, want, text)
		}
	}
}
