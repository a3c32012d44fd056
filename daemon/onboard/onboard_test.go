package onboard

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/intake"
	"lacuna/pipeline/field"
)

var onboardingDay = time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)

func TestMemoryIsTheLagAtWhichHalfOfAnAnomalyIsLeft(t *testing.T) {
	// An anomaly that turns at a steady rate correlates with itself as the
	// cosine of the lag: a sixth of a turn leaves half.
	const period, cells = 24, 4000
	grid := field.Grid{Lat: make([]float64, 40), Lon: make([]float64, cells/40)}
	var fields []field.Field
	for day := range 24 {
		f := field.Field{Grid: grid, Time: onboardingDay.AddDate(0, 0, day), Values: make([]float32, cells)}
		for c := range f.Values {
			f.Values[c] = float32(10 + math.Sin(2*math.Pi*(float64(day)/period+float64(c)/97)))
		}
		fields = append(fields, f)
	}
	if got := memoryDays(fields, field.Transform{}); got != period/6 && got != period/6+1 {
		t.Errorf("memory is %d days, want about %d", got, period/6)
	}
	if got := memoryDays(fields[:2], field.Transform{}); got != 0 {
		t.Errorf("two days give a memory of %d days, want none", got)
	}
}

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
