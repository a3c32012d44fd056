package learn

import (
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fhs/go-netcdf/netcdf"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/realdata"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/train"
)

// pacific are the real recordings of one region, with the year of their first
// day; the files count days from there.
var pacific = []struct {
	file string
	year int
}{
	{"phytofit/pacific_modis_poly4_2021.nc", 2021},
	{"phytofit/pacific_modis_ocx_2020.nc", 2020},
	{"phytofit/pacific_seawifs_gsmgs_2009.nc", 2009},
}

// readFields reads every day of a file of chlorophyll with its sea mask.
func readFields(t testing.TB, file string, year int) ([]field.Field, field.Mask) {
	t.Helper()
	ds, err := netcdf.OpenFile(realdata.Path(t, file), netcdf.NOWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	grid, err := field.NewGrid(readNumbers(t, ds, "lat"), readNumbers(t, ds, "lon"))
	if err != nil {
		t.Fatal(err)
	}
	sea := make(field.Mask, grid.Len())
	for i, m := range readNumbers(t, ds, "mask") {
		sea[i] = m == 1
	}
	values := readNumbers(t, ds, "CHL")
	var out []field.Field
	for i, day := range readNumbers(t, ds, "time") {
		f := field.Field{Grid: grid, Sea: sea, Values: make([]float32, grid.Len())}
		f.Time = time.Date(year, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, int(day))
		for c, v := range values[i*grid.Len() : (i+1)*grid.Len()] {
			f.Values[c] = field.NaN()
			if v > 1e-3 && v < 1000 { // outside of it are fill values
				f.Values[c] = float32(v)
			}
		}
		out = append(out, f)
	}
	return out, sea
}

func readNumbers(t testing.TB, ds netcdf.Dataset, name string) []float64 {
	t.Helper()
	v, err := ds.Var(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	n, err := v.Len()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	kind, err := v.Type()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out := make([]float64, n)
	switch kind {
	case netcdf.DOUBLE:
		err = v.ReadFloat64s(out)
	case netcdf.FLOAT:
		err = asFloat64(out, v.ReadFloat32s)
	case netcdf.INT:
		err = asFloat64(out, v.ReadInt32s)
	case netcdf.BYTE:
		err = asFloat64(out, v.ReadInt8s)
	default:
		t.Fatalf("%s is of type %v", name, kind)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func asFloat64[N int8 | int32 | float32](dst []float64, read func([]N) error) error {
	stored := make([]N, len(dst))
	err := read(stored)
	for i, v := range stored {
		dst[i] = float64(v)
	}
	return err
}

// seriesOf returns the log10 series of files of one grid.
func seriesOf(t testing.TB, files ...int) samples.Series {
	t.Helper()
	var all []field.Field
	var sea field.Mask
	for _, k := range files {
		fields, s := readFields(t, pacific[k].file, pacific[k].year)
		all, sea = append(all, fields...), s
	}
	series, err := samples.New(all, sea, field.Transform{Log10: true, Floor: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	return series
}

// The real masks are as the notes of this project describe them: on 64×64
// cells of the Pacific, coverage has a standard deviation near 0.23, and gaps
// hang together over several cells.
func TestRealMasksAreCoherentAndUneven(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	data, _ := pacificSplit(t, 0)
	var all []prior.Mask
	for _, r := range data.Refs(64, 64, partition.MinObservedCells) {
		all = append(all, prior.MaskOf(data.Cut(r)))
	}
	s := masks.Describe(all)
	t.Logf("%+v", s)
	if s.CoverageSD < 0.15 || s.CoverageSD > 0.3 || s.CorrelationCells < 3 || s.EdgeDensity > 0.15 {
		t.Errorf("real masks are described as %+v", s)
	}
}

func pacificSplit(t testing.TB, files ...int) (samples.Train, samples.HeldOut) {
	t.Helper()
	data, held, err := seriesOf(t, files...).Split(samples.DefaultSplit())
	if err != nil {
		t.Fatal(err)
	}
	return data, held
}

// A short training on real masks, with a tiny network on 32×32 cells. It takes three minutes of one processor, so it is part of the long
// suite; the exact tests beside it say the same of the sampler in seconds.
func TestTrainedOnRealMasks(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("set LACUNA_LONG=1 to train on real masks for minutes")
	}
	data, held := pacificSplit(t, 0, 1, 2)
	cfg := DefaultPrior()
	cfg.Model.Size, cfg.Side, cfg.Stride, cfg.Batch = nn.Tiny, 32, 16, 16
	cfg.Step.Steps, cfg.Step.LearningRate, cfg.Step.EMADecay = 1200, 3e-3, 0.995
	cfg.EvaluateEvery, cfg.EvaluateMasks, cfg.Patience = 400, 128, 0
	cfg.Sampling.Batch = 64
	m, report, err := TrainPrior(t.Context(), enginetest.Open(t), data, held, cfg, train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	t.Logf("%+v", report)

	var patches []samples.Patch
	refs := held.Refs(32, 16, partition.MinObservedCells)
	for _, k := range noise.New(1, "chosen").Rand(0).Perm(len(refs))[:256] {
		patches = append(patches, held.Cut(refs[k]))
	}
	real := make([]prior.Mask, len(patches))
	for i, p := range patches {
		real[i] = prior.MaskOf(p)
	}
	t.Run("coverage varies as it does in nature", func(t *testing.T) { checkSpread(t, m, cfg, patches, masks.Describe(real)) })
	t.Run("what it calls likely is as frequent", func(t *testing.T) { checkReliability(t, m, real[:64]) })
	t.Run("likelihood tells real masks from salt and pepper", func(t *testing.T) { checkLikelihood(t, m, real[:64]) })
	t.Run("guidance follows rho and leaves no dead zone", func(t *testing.T) { checkGuidance(t, m, cfg, patches[:4]) })
}

// checkSpread compares unconditional masks of both spacings with real ones.
func checkSpread(t *testing.T, m *prior.Model, cfg PriorConfig, patches []samples.Patch, real masks.Statistics) {
	places := make([]prior.Place, len(patches))
	for i, p := range patches {
		places[i] = prior.PlaceOf(p)
	}
	ratio, length := map[prior.Spacing]float64{}, map[prior.Spacing]float64{}
	for _, spacing := range []prior.Spacing{prior.LogSNR, prior.Even} {
		c := cfg.Sampling
		c.Spacing = spacing
		drawn, err := m.Draw(t.Context(), places, c, noise.New(1, "spread"))
		if err != nil {
			t.Fatal(err)
		}
		s := masks.Describe(prior.MasksAt(places, drawn))
		t.Logf("%s: %+v; real: %+v", spacing, s, real)
		ratio[spacing] = s.CoverageSD / real.CoverageSD
		length[spacing] = s.CorrelationCells / real.CorrelationCells
	}
	if math.Abs(ratio[prior.LogSNR]-1) > 0.15 {
		t.Errorf("log-SNR steps give %.2f of the real spread of coverage, want 1 within 0.15", ratio[prior.LogSNR])
	}
	if ratio[prior.Even] >= ratio[prior.LogSNR] {
		t.Errorf("even steps give %.2f of the real spread and log-SNR steps %.2f", ratio[prior.Even], ratio[prior.LogSNR])
	}
	if math.Abs(length[prior.LogSNR]-1) > 0.2 {
		t.Errorf("masks hang together over %.2f of the real length, want 1 within 0.2", length[prior.LogSNR])
	}
	if length[prior.Even] >= length[prior.LogSNR] {
		t.Errorf("even steps give %.2f of the real length and log-SNR steps %.2f", length[prior.Even], length[prior.LogSNR])
	}
}

// checkReliability noises real masks and asks: among the cells that the network
// gives a probability, that share must be observed.
func checkReliability(t *testing.T, m *prior.Model, real []prior.Mask) {
	const bins, tolerance = 10, 0.1
	var said, seen, n [bins]float64
	cells := len(real[0].Sea)
	for k, logSNR := range []float64{-3, -2, -1, 0} {
		level := m.Schedule().At(m.Schedule().TimeOf(logSNR))
		var x []float32
		places := make([]prior.Place, len(real))
		for i, mask := range real {
			places[i] = mask.Place
			x = append(x, latentsOf(mask.Observed, level, noise.New(uint64(i), "reliability"), uint64(k))...)
		}
		observed, err := m.Predict(t.Context(), places, prior.Latents{X: x, Items: len(real), Cells: cells, Level: level})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range observed {
			mask, cell := real[i/cells], i%cells
			if mask.Sea[cell] {
				bin := min(int(p*bins), bins-1)
				said[bin], n[bin] = said[bin]+float64(p), n[bin]+1
				if mask.Observed[cell] {
					seen[bin]++
				}
			}
		}
	}
	for bin := range bins {
		t.Logf("said %.3f, observed %.3f of %.0f cells", said[bin]/n[bin], seen[bin]/n[bin], n[bin])
		if n[bin] > 1000 && math.Abs(said[bin]-seen[bin])/n[bin] > tolerance {
			t.Errorf("cells with a probability of %.2f are observed in %.2f of the cases", said[bin]/n[bin], seen[bin]/n[bin])
		}
	}
}

func checkLikelihood(t *testing.T, m *prior.Model, real []prior.Mask) {
	salt := make([]prior.Mask, len(real))
	for i, mask := range real {
		var sea []int
		for cell, is := range mask.Sea {
			if is {
				sea = append(sea, cell)
			}
		}
		salt[i] = prior.Mask{Place: mask.Place, Observed: make([]bool, len(mask.Observed))}
		for k, from := range noise.New(1, "salt").Rand(uint64(i)).Perm(len(sea)) {
			salt[i].Observed[sea[k]] = mask.Observed[sea[from]]
		}
	}
	cost := func(masks []prior.Mask) []float64 {
		bits, err := m.MaskBits(t.Context(), masks, 64)
		if err != nil {
			t.Fatal(err)
		}
		return bits
	}
	score := func(masks []prior.Mask) []float64 {
		got, err := m.MaskSurprises(t.Context(), masks, 64)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, len(got))
		for i, s := range got {
			out[i] = s.Score
		}
		return out
	}
	plain, both := skill.AUC(cost(salt), cost(real)), skill.AUC(score(salt), score(real))
	t.Logf("AUC of salt and pepper against real masks: bits %.3f, score %.3f", plain, both)
	if plain < 0.8 || both < 0.9 {
		t.Errorf("AUC of salt and pepper against real masks is %.3f by bits, want at least 0.8, and %.3f by the score, want at least 0.9", plain, both)
	}
}

// checkGuidance draws each patch 32 times for two values of rho.
func checkGuidance(t *testing.T, m *prior.Model, cfg PriorConfig, patches []samples.Patch) {
	guide := prior.DefaultGuidance()
	guide.SampleConfig, guide.Anchor = cfg.Sampling, prior.AnchorPixel
	const draws = 32
	guide.Steps, guide.Batch = 10, draws
	share := map[float64]float64{}
	for _, rho := range []float64{0.4, 0.8} {
		guide.Rho = rho
		for i, p := range patches {
			copies := slices.Repeat([]samples.Patch{p}, draws)
			drawn, _, err := m.DrawGuided(t.Context(), copies, guide, noise.New(uint64(i), "rho"))
			if err != nil {
				t.Fatal(err)
			}
			for _, mask := range drawn {
				share[rho] += masks.ContextShare(p.Observed(), mask) / float64(draws*len(patches))
			}
		}
	}
	if share[0.8] <= share[0.4] {
		t.Errorf("context share is %.3f at rho 0.8 and %.3f at 0.4", share[0.8], share[0.4])
	}
	guide.Anchor, guide.Rho = prior.AnchorCoherent, 0
	by, err := prior.NewGuided(m, guide)
	if err != nil {
		t.Fatal(err)
	}
	q := partition.NewQueryMap(32, 32)
	p := patches[0]
	p.Window.Row, p.Window.Col = 0, 0
	if err := partition.DrawQueries(t.Context(), by, slices.Repeat([]samples.Patch{p}, 256), 1, q, noise.New(1, "dead")); err != nil {
		t.Fatal(err)
	}
	lowest, err := q.Lowest(256)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("context share %v, lowest P(query) %+v", share, lowest)
	if !(lowest.Bound > 0) {
		t.Errorf("lowest P(query) is %+v, want a bound above 0", lowest)
	}
}
