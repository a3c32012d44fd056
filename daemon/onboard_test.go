package daemon

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
)

var onboardingDay = time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)

// someSample is what a daily chlorophyll archive in use looks like.
func someSample() *Sample {
	grid := field.Grid{Lat: make([]float64, 200), Lon: make([]float64, 300)}
	return &Sample{
		Files: 40, Read: 15, Example: "20261113_chl.nc", Newest: time.Date(2026, 11, 13, 0, 0, 0, 0, time.UTC), Days: 40, Step: 24 * time.Hour,
		Variable: "CHL", Units: "mg m-3", Product: "chlorophyll", Transform: field.Transform{Log10: true, Floor: 0.001},
		Range: [2]float64{0.001, 100}, Grid: grid, Values: field.Stats{N: 1000, Min: 0.02, Max: 30}, Coverage: 0.3, Skewness: 4, LogSkew: 0.2, Memory: 7,
	}
}

func someOnboarding(t *testing.T, place string) Onboarding {
	t.Helper()
	archive, err := ArchiveAt(place)
	if err != nil {
		t.Fatal(err)
	}
	return Onboarding{
		Name: "my-sea", Archive: archive, Sample: someSample(), StateDir: t.TempDir(), Now: onboardingDay,
		Starter: "chlorophyll-2026-11-15-0123456789abcdef",
		Machine: Machine{Engine: "ort, 2 x processor", Speed: infer.Speed{Analysis: 8 * time.Second, Look: 20 * time.Second, Step: 20 * time.Second}},
	}
}

// proposed returns the dataset of a proposal as the daemon reads it.
func proposed(t *testing.T, o Onboarding) (Dataset, string) {
	t.Helper()
	text := o.Propose()
	cfg, err := parseConfig("lacuna.yaml", text)
	if err != nil {
		t.Fatalf("the proposal is not good: %v\n%s", err, text)
	}
	return cfg.Datasets[0], string(text)
}

func TestEveryLineOfAProposalHasAReasonAndTheWholeIsGood(t *testing.T) {
	for _, place := range []string{
		t.TempDir(), "https://data.example.org/chl/", "ftp://ftp.example.org/chl", "s3://s3.example.org/bucket/some/prefix",
		"cmems_obs-oc_blk_bgc-plankton_nrt_l3-multi-1km_P1D",
	} {
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
		edit func(*Onboarding)
		want func(Dataset) bool
		says string
	}{
		{"an archive in use", nil, func(d Dataset) bool {
			return d.Fill.FutureDays == 0 && d.Fill.PastDays == 14 && d.Archive.Expect.By == "18:00" && d.Archive.Expect.LagDays == 3
		}, "twice that is looked at"},
		{
			"an archive that ended", func(o *Onboarding) { o.Sample.Newest = onboardingDay.AddDate(-1, 0, 0) },
			func(d Dataset) bool { return d.Fill.FutureDays == 10 && d.Archive.Expect.By == "" }, "nothing here is near real time",
		},
		{
			"a slow machine", func(o *Onboarding) { o.Machine.Speed.Step = time.Minute },
			func(d Dataset) bool { return d.Fill.Network.Tier == infer.Fast }, "standard about 2m",
		},
		{
			"a fast machine", func(o *Onboarding) { o.Machine.Speed = infer.Speed{Look: time.Second, Step: 100 * time.Millisecond} },
			func(d Dataset) bool { return d.Fill.Network.Tier == infer.Full }, "full about",
		},
		{
			"no engine", func(o *Onboarding) { o.Machine = Machine{Missing: "no libonnxruntime"} },
			func(d Dataset) bool { return d.Fill.Network.Tier == "" }, "no engine for networks is usable here (no libonnxruntime)",
		},
		{
			"a quality rule", func(o *Onboarding) { o.Sample.Quality = []string{"quality_level >= 4"} },
			func(d Dataset) bool { return len(d.Quality) == 1 }, "must all hold",
		},
		{
			"nothing seen, a known product", func(o *Onboarding) {
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

func TestPlacesBecomeArchives(t *testing.T) {
	for place, want := range map[string]string{
		"archive":                                            "dir",
		"https://data.example.org/a/":                        "http",
		"ftp://ftp.example.org/pub/chl":                      "ftp",
		"s3://s3.example.org/b/p/q":                          "s3",
		"cmems_obs-oc_blk_bgc-plankton_nrt_l3-multi-1km_P1D": "cmems",
	} {
		a, err := ArchiveAt(place)
		if err != nil || a.Type != want {
			t.Errorf("%s is of type %q, %v; want %s", place, a.Type, err, want)
		}
		if faults := a.faults("$"); len(faults) > 0 {
			t.Errorf("%s: %v", place, faults)
		}
	}
	if a, err := ArchiveAt("s3://s3.example.org/b/p/q"); err != nil || a.S3.Bucket != "b" || a.S3.Prefix != "p/q" {
		t.Errorf("bucket %q, prefix %q, %v", a.S3.Bucket, a.S3.Prefix, err)
	}
	for _, bad := range []string{"s3://host", "gopher://host/x"} {
		if _, err := ArchiveAt(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestDatasetNamesAreNames(t *testing.T) {
	for from, want := range map[string]string{
		"/data/Black Sea (CHL)": "black-sea--chl", "a.nc": "a", "///": "dataset", "20240301_x.nc": "20240301_x",
		strings.Repeat("x", 90): strings.Repeat("x", 62),
	} {
		if got := DatasetName(from); got != want || !datasetName.MatchString(got) {
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
	if bytes.Contains(Onboarding{Now: onboardingDay, Archive: defaultArchive()}.Propose(), []byte("# \n")) {
		t.Error("an empty reason was written")
	}
}
