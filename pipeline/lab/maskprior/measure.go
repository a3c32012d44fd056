package maskprior

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// report is the printed result.
type report struct {
	Engine   string             `json:"engine"`
	Config   learn.PriorConfig  `json:"config"`
	Training *learn.PriorReport `json:"training,omitempty"`

	Train   masks.Statistics `json:"train"`    // statistics of training masks
	HeldOut masks.Statistics `json:"held_out"` // statistics of the held-out masks at whose places masks are drawn
	// ByDraw holds unconditional masks of both spacings and guided ones.
	ByDraw map[string]drawReport `json:"by_draw"`
	// FrequencyCeiling is the correlation of the per-cell frequency of
	// training masks with that of held-out ones: that of a perfect prior.
	FrequencyCeiling float64 `json:"frequency_ceiling"`

	BitsPerPixel map[string]float64 `json:"bits_per_pixel"` // means
	Surprise     map[string]float64 `json:"surprise"`       // means of the score that sees both sides
	AUC          map[string]float64 `json:"auc"`            // AUC of that score, held-out masks against others
	AUCBits      map[string]float64 `json:"auc_bits"`       // AUC of the plain bits

	Strength  map[string]masks.Strength        `json:"strength"`     // strength by anchor
	LowestQry map[string]partition.LowestQuery `json:"lowest_query"` // lowest P(query) by strategy
	Shares    []share                          `json:"shares,omitempty"`
	Rho       []rhoStudy                       `json:"rho,omitempty"`
	Until     []guidedStudy                    `json:"until,omitempty"`
	Pools     []poolStudy                      `json:"pools,omitempty"`
	Seconds   map[string]float64               `json:"seconds"`
}

// drawReport compares drawn masks with held-out ones.
type drawReport struct {
	masks.Statistics
	Distance             float64 `json:"distance"`
	SDRatio              float64 `json:"sd_ratio"`
	CorrelationRatio     float64 `json:"correlation_ratio"`
	GapSizeKS            float64 `json:"gap_size_ks"`           // Kolmogorov-Smirnov distance of gap sizes
	CoverageKS           float64 `json:"coverage_ks"`           // the same for coverages
	FrequencyCorrelation float64 `json:"frequency_correlation"` // per cell, with held-out masks
	FrequencyToTraining  float64 `json:"frequency_to_training"`
	ContextShare         float64 `json:"context_share"`
	Degenerate           float64 `json:"degenerate"` // share of draws with an empty context or query
	// ContextShares is the histogram of the context share over draws, in tenths.
	ContextShares [10]float64 `json:"context_shares"`
}

type bench struct {
	options
	log    *slog.Logger
	engine *engine.Engine
	train  samples.Train
	held   samples.HeldOut
	places []samples.Patch // held-out patches at whose places masks are drawn
	report *report
}

func (b *bench) measure(ctx context.Context) (*report, error) {
	r := &report{
		Engine: b.engine.Description(), Config: b.options.train,
		ByDraw: map[string]drawReport{}, BitsPerPixel: map[string]float64{}, Surprise: map[string]float64{}, AUC: map[string]float64{}, AUCBits: map[string]float64{},
		Strength: map[string]masks.Strength{}, LowestQry: map[string]partition.LowestQuery{}, Seconds: map[string]float64{},
	}
	b.report = r
	parts, err := b.chosenParts()
	if err != nil {
		return nil, err
	}
	if err := b.choosePlaces(); err != nil {
		return nil, err
	}
	m, err := b.model(ctx, r)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	m.Recall(b.held)
	for _, part := range parts {
		began := time.Now()
		if err := part.do(ctx, m); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		r.Seconds["measure "+part.name] = time.Since(began).Seconds()
		if err := b.keep(); err != nil {
			return nil, err
		}
		b.log.Info("measured", "part", part.name, "seconds", time.Since(began).Seconds())
	}
	return r, nil
}

type part struct {
	name string
	do   func(context.Context, *prior.Model) error
}

// chosenParts returns the parts that the options name, each after those that it
// depends on.
func (b *bench) chosenParts() ([]part, error) {
	all := []part{
		{"unconditional", b.unconditional},
		{"likelihood", b.likelihood},
		{"guided", b.guided},
		{"query", b.query},
		{"sweep", b.shares},
		{"rho", b.rhos},
		{"until", b.until},
		{"pool", b.pools},
	}
	var out []part
	wanted := strings.Split(b.parts, ",")
	for _, p := range all {
		if slices.Contains(wanted, p.name) {
			out = append(out, p)
		}
	}
	if len(out) != len(wanted) {
		return nil, fmt.Errorf("-parts is %q, must be some of unconditional, likelihood, guided, query, sweep, rho, until and pool", b.parts)
	}
	return out, nil
}

func (r *report) text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", " ")
	return append(text, '\n'), err
}

// keep writes the results so far: a machine that is lent for minutes may be
// taken back in the middle.
func (b *bench) keep() error {
	if b.partial == "" {
		return nil
	}
	text, err := b.report.text()
	if err != nil {
		return err
	}
	return durable.WriteFile(b.partial, text, 0o644)
}

// choosePlaces takes held-out patches at random, again and again where there
// are fewer than masks to draw.
func (b *bench) choosePlaces() error {
	t := b.options.train
	refs := b.held.Refs(t.Side, t.Stride, t.MinObserved)
	if len(refs) == 0 {
		return fmt.Errorf("no held-out window of %d cells has %d observed cells", t.Side, t.MinObserved)
	}
	order := noise.New(t.Seed, "places").Rand(0).Perm(len(refs))
	for i := range b.masks {
		b.places = append(b.places, b.held.Cut(refs[order[i%len(refs)]]))
	}
	b.report.HeldOut = masks.Describe(masksOf(b.places))
	learned := b.trainingPatches(b.masks)
	b.report.Train = masks.Describe(masksOf(learned))
	b.report.FrequencyCeiling = correlation(b.frequency(masksOf(learned), learned), b.frequency(masksOf(b.places), b.places))
	return nil
}

func (b *bench) trainingPatches(n int) []samples.Patch {
	t := b.options.train
	refs := b.train.Refs(t.Side, t.Stride, t.MinObserved)
	order := noise.New(t.Seed, "learned").Rand(0).Perm(len(refs))
	var out []samples.Patch
	for i := range min(n, len(refs)) {
		out = append(out, b.train.Cut(refs[order[i]]))
	}
	return out
}

func masksOf(patches []samples.Patch) []prior.Mask {
	out := make([]prior.Mask, len(patches))
	for i, p := range patches {
		out[i] = prior.MaskOf(p)
	}
	return out
}

func replace(patches []samples.Patch, drawn [][]bool) []prior.Mask {
	out := masksOf(patches)
	for i := range out {
		out[i].Observed = drawn[i]
	}
	return out
}

// unconditional draws with both spacings.
func (b *bench) unconditional(ctx context.Context, m *prior.Model) error {
	places := make([]prior.Place, len(b.places))
	for i, p := range b.places {
		places[i] = prior.PlaceOf(p)
	}
	for _, s := range []struct {
		name    string
		steps   int
		spacing prior.Spacing
	}{{"log-snr", b.guide.Steps, prior.LogSNR}, {"log-snr-10", 10, prior.LogSNR}, {"even", b.guide.Steps, prior.Even}} {
		cfg := b.guide.SampleConfig
		cfg.Steps, cfg.Spacing = s.steps, s.spacing
		// The first batch compiles; it is not timed.
		if _, err := m.Draw(ctx, places[:1], cfg, noise.New(1, "warm")); err != nil {
			return err
		}
		began := time.Now()
		drawn, err := m.Draw(ctx, places, cfg, noise.New(b.options.train.Seed, "unconditional"))
		if err != nil {
			return err
		}
		b.report.Seconds["draw "+s.name] = time.Since(began).Seconds()
		b.report.ByDraw[s.name] = b.compare(drawn)
	}
	b.empirical()
	return nil
}

// empirical compares masks of training days, each at the place of a held-out
// one: the overlap that comes for free.
func (b *bench) empirical() {
	r := noise.New(b.options.train.Seed, "empirical").Rand(0)
	drawn := make([][]bool, len(b.places))
	for i, p := range b.places {
		drawn[i] = b.train.Cut(samples.Ref{Day: r.IntN(b.train.Days()), Window: p.Window}).Observed()
	}
	b.report.ByDraw["empirical"] = b.compare(drawn)
}

func (b *bench) compare(drawn [][]bool) drawReport {
	placed, real := replace(b.places, drawn), masksOf(b.places)
	r := drawReport{Statistics: masks.Describe(placed)}
	held := b.report.HeldOut
	r.Distance = r.Statistics.Distance(held)
	r.SDRatio = r.CoverageSD / held.CoverageSD
	r.CorrelationRatio = r.CorrelationCells / held.CorrelationCells
	r.GapSizeKS = skill.KolmogorovSmirnov(gapSizes(placed), gapSizes(real))
	r.CoverageKS = skill.KolmogorovSmirnov(coverages(placed), coverages(real))
	learned := b.trainingPatches(math.MaxInt32)
	f := b.frequency(placed, b.places)
	r.FrequencyCorrelation = correlation(f, b.frequency(real, b.places))
	r.FrequencyToTraining = correlation(f, b.frequency(masksOf(learned), learned))
	for i, p := range b.places {
		observed := p.Observed()
		shared, seen := 0, 0
		for c, o := range observed {
			if o {
				seen++
				if drawn[i][c] {
					shared++
				}
			}
		}
		share, weight := float64(shared)/float64(seen), 1/float64(len(b.places))
		r.ContextShare += share * weight
		r.ContextShares[min(int(10*share), 9)] += weight
		if shared == 0 || shared == seen {
			r.Degenerate += 1 / float64(len(b.places))
		}
	}
	return r
}

func gapSizes(masks []prior.Mask) []float64 {
	var out []float64
	for _, m := range masks {
		for _, n := range skill.GapSizes(m.Observed, m.Sea, m.Height, m.Width) {
			out = append(out, float64(n))
		}
	}
	return out
}

func coverages(masks []prior.Mask) []float64 {
	var out []float64
	for _, m := range masks {
		out = append(out, skill.DescribeGaps(m.Observed, m.Sea, m.Height, m.Width).Coverage)
	}
	return out
}

// frequency returns how often each cell of the whole grid is observed among
// the masks that cover it, NaN where fewer than five do.
func (b *bench) frequency(masks []prior.Mask, at []samples.Patch) []float64 {
	h, w := b.train.Grid().Height(), b.train.Grid().Width()
	seen, all := make([]float64, h*w), make([]float64, h*w)
	for i, m := range masks {
		for c, sea := range m.Sea {
			row, col := at[i].Window.Row+c/m.Width, at[i].Window.Col+c%m.Width
			if !sea || row < 0 || col < 0 || row >= h || col >= w {
				continue
			}
			all[row*w+col]++
			if m.Observed[c] {
				seen[row*w+col]++
			}
		}
	}
	for i := range seen {
		if all[i] < 5 {
			seen[i] = math.NaN()
			continue
		}
		seen[i] /= all[i]
	}
	return seen
}

// correlation returns the correlation over the cells where neither is NaN.
func correlation(a, b []float64) float64 {
	var n, sa, sb, saa, sbb, sab float64
	for i := range a {
		if math.IsNaN(a[i]) || math.IsNaN(b[i]) {
			continue
		}
		n++
		sa, sb = sa+a[i], sb+b[i]
		saa, sbb, sab = saa+a[i]*a[i], sbb+b[i]*b[i], sab+a[i]*b[i]
	}
	d := math.Sqrt((n*saa - sa*sa) * (n*sbb - sb*sb))
	if !(d > 0) {
		return 0
	}
	return (n*sab - sa*sb) / d
}
