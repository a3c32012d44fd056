package daemon

import (
	"strings"
	"testing"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/onboard"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
)

var onboardingDay = time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)

// someSample is the sample of a daily chlorophyll archive.
func someSample() *onboard.Sample {
	grid := field.Grid{Lat: make([]float64, 200), Lon: make([]float64, 300)}
	return &onboard.Sample{
		Files: 40, Read: 15, Example: "20261113_chl.nc", Newest: time.Date(2026, 11, 13, 0, 0, 0, 0, time.UTC), Days: 40, Step: 24 * time.Hour,
		Variable: "CHL", Units: "mg m-3", Product: "chlorophyll", Transform: field.Transform{Log10: true, Floor: 0.001},
		Range: [2]float64{0.001, 100}, Grid: grid, Values: field.Stats{N: 1000, Min: 0.02, Max: 30}, Coverage: 0.3, Skewness: 4, LogSkew: 0.2,
	}
}

func someOnboarding(t *testing.T, place string) onboard.Onboarding {
	t.Helper()
	archive, err := intake.At(place)
	if err != nil {
		t.Fatal(err)
	}
	return onboard.Onboarding{
		Name: "my-sea", Archive: archive, Sample: someSample(), StateDir: t.TempDir(), Now: onboardingDay,
		Starter: "chlorophyll-2026-11-15-0123456789abcdef",
		Machine: onboard.Machine{Engine: "ort, 2 x processor", Speed: infer.Speed{Analysis: 8 * time.Second, Look: 20 * time.Second, Step: 20 * time.Second}},
	}
}

// proposed returns the dataset of a proposal as the daemon reads it.
func proposed(t *testing.T, o onboard.Onboarding) (Dataset, string) {
	t.Helper()
	text := o.Propose()
	cfg, err := parseConfig("lacuna.yaml", text)
	if err != nil {
		t.Fatalf("the proposal is not good: %v\n%s", err, text)
	}
	return cfg.Datasets[0], string(text)
}

func TestEveryLineOfAProposalHasAReasonAndTheWholeIsGood(t *testing.T) {
	for _, place := range intake.Examples() {
		_, text := proposed(t, someOnboarding(t, place))
		before := "#"
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, ":") && !strings.HasPrefix(before, "#") {
				t.Errorf("%s: no reason above %q", place, line)
			}
			before = line
		}
	}
}

func TestAProposalFollowsWhatWasSeen(t *testing.T) {
	tests := []struct {
		name string
		edit func(*onboard.Onboarding)
		want func(Dataset) bool
		says string
	}{
		{"an archive in use", nil, func(d Dataset) bool {
			return d.Fill.FutureDays == 0 && d.Fill.PastDays == infer.JudgedPastDays && d.Archive.Expect.By == "18:00" && d.Archive.Expect.LagDays == 3
		}, "do not hold for another window"},
		{
			"an archive that ended", func(o *onboard.Onboarding) { o.Sample.Newest = onboardingDay.AddDate(-1, 0, 0) },
			func(d Dataset) bool { return d.Fill.FutureDays == 10 && d.Archive.Expect.By == "" }, "nothing here is near real time",
		},
		{
			"an hourly archive", func(o *onboard.Onboarding) {
				o.Sample.Step, o.Sample.Newest = time.Hour, o.Now.Add(-150*time.Minute)
			},
			func(d Dataset) bool { return d.Archive.Expect.By == "" && d.Archive.Expect.Within == 3*time.Hour }, "starter models learned from daily fields, and these are 1h apart",
		},
		{
			"a monthly archive", func(o *onboard.Onboarding) {
				o.Sample.Step, o.Sample.Newest = 30*24*time.Hour, o.Now.AddDate(0, 0, -40)
			},
			func(d Dataset) bool {
				return d.Fill.PastDays == infer.JudgedPastDays && d.Fill.FutureDays == 0 && d.Archive.Expect.Within == 40*24*time.Hour+time.Hour
			}, "steps of the series, which are 720h",
		},
		{
			"a slow machine", func(o *onboard.Onboarding) { o.Machine.Speed.Step = time.Hour },
			func(d Dataset) bool { return d.Fill.Network.Tier == "" && d.Fill.Network.Deadline == time.Hour }, "fills, here fast.",
		},
		{
			"a fast machine", func(o *onboard.Onboarding) {
				o.Machine.Speed = infer.Speed{Look: time.Second, Step: 100 * time.Millisecond}
			},
			func(d Dataset) bool { return d.Fill.Network.Tier == "" && d.Fill.Network.Deadline == time.Hour }, "fills, here full.",
		},
		{
			"no engine", func(o *onboard.Onboarding) { o.Machine = onboard.Machine{Missing: "no libonnxruntime"} },
			func(d Dataset) bool { return d.Fill.Network.Tier == "" }, "no engine for networks is usable here (no libonnxruntime)",
		},
		{
			"a quality rule", func(o *onboard.Onboarding) { o.Sample.Quality = []string{"quality_level >= 4"} },
			func(d Dataset) bool { return len(d.Quality) == 1 }, "must all hold",
		},
		{
			"nothing seen, a known product", func(o *onboard.Onboarding) {
				o.Sample, o.Options = nil, ingest.Options{Product: "cmems_obs-oc_blk_bgc-plankton_nrt_l3-multi-1km_P1D"}
			},
			func(d Dataset) bool { return d.Variable == "CHL" && d.Transform == "log10" && d.Range[1] == 100 }, "without a granule to look at",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := someOnboarding(t, t.TempDir())
			if tt.edit != nil {
				tt.edit(&o)
			}
			d, text := proposed(t, o)
			unwrapped := strings.Join(strings.Fields(strings.ReplaceAll(text, "#", " ")), " ")
			if !tt.want(d) || !strings.Contains(unwrapped, tt.says) {
				t.Errorf("want the words %q and other settings in:\n%s", tt.says, text)
			}
		})
	}
}

func TestProposedNamesAreTaken(t *testing.T) {
	for _, from := range []string{"/data/Black Sea (CHL)", "a.nc", "///", strings.Repeat("x", 90)} {
		if got := onboard.DatasetName(from); !datasetName.MatchString(got) {
			t.Errorf("%q is proposed for %q, and no dataset may have that name", got, from)
		}
	}
}
