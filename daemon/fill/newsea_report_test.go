package fill

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"lacuna/modelstore/starters"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/ingesttest"
	"lacuna/pipeline/realdata"
	"lacuna/pipeline/skill"
)

var (
	report   = flag.Bool("report", false, "print how far the intervals of a new sea cover")
	targets  = flag.Int("targets", 12, "days to fill for each length of history, with -report")
	starting = flag.Bool("starter", false, "the starters as well, with -report")
	only     = flag.String("sea", "", "the seas whose names contain this, with -report")
	lengths  = flag.String("days", "1 2 5 10 30 90", "days of history, with -report")
)

func TestMain(m *testing.M) {
	ingesttest.Decode()
	os.Exit(m.Run())
}

// A newSea is a real series of which a test uses the first days only, as a
// service does that was started just before.
type newSea struct {
	name, file           string
	row, col, high, wide int // part that is used; 0: all
}

var newSeas = []newSea{
	{name: "Florida, SST", file: "florida_modis_sst/florida_modis_sst_2023.nc", row: 30, col: 60, high: 96, wide: 120},
	{name: "Gulf of Maine, SST", file: "bigelow_gom_sst/gom_modis_sst_daily_201808.nc"},
	{name: "Alboran, SST", file: "dineof_alboran/alboranSST_small.nc", row: 60, col: 90, high: 100, wide: 130},
	{name: "St Lawrence, chlorophyll", file: "phytofit/testregion_365d.nc"},
	{name: "Pacific coast, chlorophyll", file: "phytofit/pacific_modis_poly4_2021.nc", row: 60, col: 165, high: 120, wide: 120},
}

// load reads the days of a sea.
func (s newSea) load(t *testing.T) ingest.Granule {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := ingest.NewReader(ingest.DefaultConfig(), []string{self, "decode"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := reader.Read(t.Context(), realdata.Path(t, s.file), ingest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.high > 0 {
		for i, f := range g.Fields {
			g.Fields[i] = crop(f, s)
		}
	}
	g.Rejected = nil
	return g
}

func crop(f field.Field, s newSea) field.Field {
	w := f.Grid.Width()
	out := f
	out.Grid = field.Grid{Lat: f.Grid.Lat[s.row : s.row+s.high], Lon: f.Grid.Lon[s.col : s.col+s.wide]}
	out.Values, out.Sea = make([]float32, s.high*s.wide), nil
	if f.Sea != nil {
		out.Sea = make(field.Mask, s.high*s.wide)
	}
	for i := range out.Values {
		from := (s.row+i/s.wide)*w + s.col + i%s.wide
		out.Values[i] = f.Values[from]
		if f.Sea != nil {
			out.Sea[i] = f.Sea[from]
		}
	}
	return out
}

// classes are the upper ends of the classes of distance, in cells.
var classes = []float64{1.5, 3.5, 7.5, 15.5, math.Inf(1)}

// A tally counts the hidden cells of a class, and those inside their interval.
type tally struct {
	cells, within    int
	squares, claimed float64
}

func (c tally) covered() float64 { return float64(c.within) / float64(max(c.cells, 1)) }

func (c *tally) add(miss, sigma float64) {
	c.cells++
	c.squares += miss * miss
	c.claimed += sigma * sigma
	if math.Abs(miss) <= 1.6448536*sigma {
		c.within++
	}
}

// A tallies are those of all classes of distance.
type tallies [5]tally

func (a tallies) all() (sum tally) {
	for _, c := range a {
		sum.cells += c.cells
		sum.within += c.within
		sum.squares += c.squares
		sum.claimed += c.claimed
	}
	return sum
}

func (a tallies) String() string {
	all := a.all()
	var b strings.Builder
	fmt.Fprintf(&b, "%6.3f |", all.covered())
	for _, c := range a {
		if c.cells < 200 {
			fmt.Fprintf(&b, "      –")
			continue
		}
		fmt.Fprintf(&b, " %6.3f", c.covered())
	}
	n := float64(max(all.cells, 1))
	fmt.Fprintf(&b, " | RMSE %.4f sigma %.4f | spread/skill", math.Sqrt(all.squares/n), math.Sqrt(all.claimed/n))
	for _, c := range a {
		fmt.Fprintf(&b, " %5.2f", math.Sqrt(c.claimed/c.squares))
	}
	fmt.Fprintf(&b, " | %d cells", all.cells)
	return b.String()
}

// hide returns day t of a sea under the gaps of another day, and what they hide.
func hide(g ingest.Granule, t int) (visible, hidden field.Mask, ok bool) {
	truth := g.Fields[t]
	hash := fnv.New64a()
	fmt.Fprint(hash, t)
	start := int(hash.Sum64() % uint64(len(g.Fields)))
	for k := range g.Fields {
		lender := g.Fields[(start+k)%len(g.Fields)]
		visible, hidden = make(field.Mask, len(truth.Values)), make(field.Mask, len(truth.Values))
		for c := range truth.Values {
			sea := truth.Sea == nil || truth.Sea[c]
			visible[c] = sea && truth.Observed(c) && lender.Observed(c)
			hidden[c] = sea && truth.Observed(c) && !lender.Observed(c)
		}
		if skill.Usable(visible, hidden) {
			return visible, hidden, true
		}
	}
	return nil, nil, false
}

// cellsOfADay bounds the cells of a class that a day counts with: their errors
// are alike, and one clear day would outweigh all others.
const cellsOfADay = 100

// newcomer fills day t of a sea of which n days are known before it, with a part
// of the day hidden, tallies the hidden cells, and keeps the day as scored.
func newcomer(ctx context.Context, g ingest.Granule, t, n int, choose func(Job) Choice, scored *[]skill.ScoredDay, sum *tallies) error {
	visible, hidden, ok := hide(g, t)
	if !ok {
		return nil
	}
	truth := g.Fields[t]
	shown := g
	shown.Name, shown.SHA256 = fmt.Sprint(t), fmt.Sprint(t)
	shown.Fields = []field.Field{truth}
	shown.Fields[0].Values = make([]float32, len(truth.Values))
	for c := range truth.Values {
		shown.Fields[0].Values[c] = field.NaN()
		if visible[c] {
			shown.Fields[0].Values[c] = truth.Values[c]
		}
	}
	job := Job{Dataset: "new", Granule: shown, Sea: truth.Sea, Fill: infer.DefaultConfig()}
	for d := t - n; d < t; d++ {
		day := g
		day.SHA256, day.Fields = fmt.Sprint(d), g.Fields[d:d+1]
		job.History = append(job.History, day)
	}
	choice := choose(job)
	job.Fill, job.Model, job.Scaling = choice.Fill, choice.Model, choice.Scaling
	job.Widening = skill.Widen(*scored, truth.Time)
	outcome, err := Analyse(ctx, job, nil)
	if err != nil {
		return err
	}
	a := outcome.Analyses[0]
	value, want := make([]float32, len(a.Value)), make([]float32, len(a.Value))
	g.Transform.Forward(value, a.Value)
	g.Transform.Forward(want, truth.Values)
	own := a.Sigma
	if a.Own != nil {
		own = a.Own
	}
	w := truth.Grid.Width()
	*scored = append(*scored, skill.ScoreDay(skill.Sample{
		Day: truth.Time, Height: len(visible) / w, Width: w, Truth: want, Mean: value, Sigma: own, Visible: visible, Scored: hidden,
	}))
	far := skill.Distances(visible, len(visible)/w, w)
	var counted [5]int
	for _, c := range rand.New(rand.NewPCG(uint64(t), 1)).Perm(len(hidden)) {
		if !hidden[c] || a.Sigma[c] != a.Sigma[c] {
			continue
		}
		class := slices.IndexFunc(classes, func(edge float64) bool { return far[c] <= edge })
		if counted[class]++; counted[class] <= cellsOfADay {
			sum[class].add(float64(value[c]-want[c]), float64(a.Sigma[c]))
		}
	}
	return nil
}

// TestReportIntervalsOfANewSea prints how often the truth lies inside the 90 %
// interval by days of history and by distance to the nearest observation; run it
// with -report -v.
func TestReportIntervalsOfANewSea(t *testing.T) {
	if !*report {
		t.Skip("prints a table: run with -report")
	}
	for _, sea := range newSeas {
		if !strings.Contains(sea.name, *only) {
			continue
		}
		t.Run(sea.name, func(t *testing.T) {
			g := sea.load(t)
			for _, method := range []struct {
				name   string
				choose func(Job) Choice
			}{{"oi", interpolated}, {"starter", starterChoice(t, g)}} {
				for _, text := range strings.Fields(*lengths) {
					var n int
					fmt.Sscan(text, &n)
					if n >= len(g.Fields) || method.name == "starter" && (n < 10 || !*starting) {
						continue
					}
					var sum tallies
					days := len(g.Fields) - n
					for k := range min(*targets, days) {
						var none []skill.ScoredDay
						if err := newcomer(t.Context(), g, n+k*days/min(*targets, days), n, method.choose, &none, &sum); err != nil {
							t.Fatal(err)
						}
					}
					t.Logf("%-8s %3d days | %s", method.name, n, sum)
				}
			}
		})
	}
}

// TestReportIntervalsOfASeaAsItGrows goes through the days of a sea in their order,
// calibrated by the days scored before, as the service does; run it with -report -v.
func TestReportIntervalsOfASeaAsItGrows(t *testing.T) {
	if !*report {
		t.Skip("prints a table: run with -report")
	}
	for _, sea := range newSeas {
		if !strings.Contains(sea.name, *only) {
			continue
		}
		t.Run(sea.name, func(t *testing.T) {
			g := sea.load(t)
			starter := starterChoice(t, g)
			for _, method := range []struct {
				name   string
				choose func(Job) Choice
			}{{"oi", interpolated}, {"auto", starter}} {
				if method.name == "auto" && !*starting {
					continue
				}
				grown := grow(t, g, method.choose)
				for i, sum := range grown {
					if sum.all().cells > 0 {
						t.Logf("%-8s from day %3d | %s", method.name, ages[i], sum)
					}
				}
			}
		})
	}
}

// ages are the first days of history of the classes of age.
var ages = []int{0, 1, 2, 5, 10, 30, 60}

// grow fills the days of a sea from its first on, and from others on as if it began
// with them, for a hundred days each.
func grow(t *testing.T, g ingest.Granule, choose func(Job) Choice) []tallies {
	t.Helper()
	const starts, span = 3, 100
	sums := make([]tallies, len(ages))
	for s := range starts {
		first := s * max(len(g.Fields)-span, 0) / (starts - 1)
		if s > 0 && len(g.Fields) <= span {
			break
		}
		var scored []skill.ScoredDay
		for d := range min(span, len(g.Fields)-first) {
			age := len(ages) - 1
			for ages[age] > d {
				age--
			}
			if err := newcomer(t.Context(), g, first+d, d, choose, &scored, &sums[age]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sums
}

func interpolated(j Job) Choice { return Choice{Fill: j.Fill} }

// starterChoice returns the choice of the starter of the quantity, scaled by
// the days of a job.
func starterChoice(t *testing.T, g ingest.Granule) func(Job) Choice {
	t.Helper()
	all, err := starters.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, why := StarterFor(all, g)
	if v == nil {
		t.Skip(why)
	}
	model, err := LoadModel(v, modelDevice(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	return func(j Job) Choice {
		fields := slices.Clone(j.Granule.Fields)
		for _, h := range j.History[max(len(j.History)-90, 0):] {
			fields = append(fields, h.Fields...)
		}
		scaling, err := LearnLocalScaling(fields, j.Sea, j.Granule.Transform)
		if err != nil {
			return interpolated(j)
		}
		c := Choice{Fill: j.Fill, Model: model, Scaling: &scaling}
		c.Fill.Method = infer.MethodModel
		return c
	}
}
