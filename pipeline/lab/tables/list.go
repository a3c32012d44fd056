package tables

import (
	"fmt"
	"slices"
	"strings"

	"lacuna/internal/faults"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/baselines"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/prior"
)

// A Table is a question and the rows that answer it. Others are compared with
// its first row.
type Table struct {
	Name  string      `json:"name"`
	About string      `json:"about"` // the question that it settles, a sentence
	Mode  impute.Mode `json:"mode"`  // mode of rows that name none
	Rows  []Row       `json:"rows"`
}

// Validate reports everything wrong with t.
func (t Table) Validate() error {
	var errs faults.List
	errs.Check(len(t.Rows) > 0, "table %s has no rows", t.Name)
	seen := map[string]bool{}
	for _, r := range t.Rows {
		errs.Add(r.Validate())
		errs.Check(!seen[r.Name], "table %s has two rows called %s", t.Name, r.Name)
		seen[r.Name] = true
	}
	return errs.Err()
}

// All returns every table.
func All() []Table {
	return []Table{
		{
			"main", "The paper's main table: one frame in, equal data, split, network and steps.", impute.Single,
			[]Row{paper("guided"), published(), ambient(0.3), ambientObserved(), dindiff(), missdiff()},
		},
		{
			"strategies", "How observations are split into context and query in training.", impute.Single,
			[]Row{paper("guided"), published(), paper("unconditional"), paper("empirical"), ambient(0.3), paper("block8"), paper("saliency"), paper("coherent")},
		},
		{"samplers", "The paper's five samplers, and both readings of its blend and of its contexts, on one network.", impute.Single, samplers()},
		{"contexts", "Over how many contexts a prediction is averaged, on one network of ours and on one of the paper's.", impute.Single, contexts()},
		{"backbones", "UNet against vision transformer, at the same size and number of steps.", impute.Single, []Row{paper("guided"), vit(paper("guided")), published(), vit(published())}},
		{"ratio", "How much of a map AmbientDiff shows in training.", impute.Single, []Row{ambient(0.3), ambient(0.1), ambient(0.5), ambient(0.7), ambient(0.9), published()}},
		{"sensitivity", "Guidance: share of the anchor, weight and steps, and what they do to masks and to the error.", impute.Single, sensitivity()},
		{"anchors", "How the anchor of guidance is thinned, by regions or by pixels.", impute.Single, anchors()},
		{
			"classical", "Lacuna against the methods in use, with the same information.", impute.Past,
			[]Row{imputer(), ensemble(), members(), {Name: "oi-tuned", By: TunedOI}, {Name: "oi", By: OI}, {Name: "oi-calibrated", By: CalibratedOI}, {Name: "dineof", By: DINEOF}, dincae(), {Name: "persistence", By: Persistence}, {Name: "climatology", By: Climatology}},
		},
		{"texture", "What it costs to publish maps as rough as real ones: the prediction with a share of one member.", impute.Past, texture()},
		{"temporal", "What the days around a day bring.", impute.Past, temporal()},
		{
			"mnar", "Missing not at random: the error under overlays against that under the real clouds, where the truth is known.", impute.Past,
			[]Row{imputer(), {Name: "oi", By: OI}, {Name: "persistence", By: Persistence}, {Name: "climatology", By: Climatology}},
		},
		{"gaussian", "A Gaussian random field, of which kriging is the best that can be done.", impute.Single, []Row{{Name: "kriging", By: Kriging}, paper("empirical"), {Name: "oi", By: OI}}},
	}
}

// Of returns the table of a name.
func Of(name string) (Table, error) {
	var names []string
	for _, t := range All() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Table{}, fmt.Errorf("table is %q, must be one of %v", name, names)
}

// Names of rows by Stored; RowModel is followed by the name of a version.
const (
	RowStarter  = "starter"  // the starter of the variable
	RowChampion = "champion" // the champion of the dataset in a model store
	RowModel    = "model:"
)

// Methods returns the rows of all tables by name, in order.
func Methods() []Row {
	rows := []Row{}
	for _, t := range append(All(), Table{Rows: []Row{{Name: RowStarter, By: Stored}, {Name: RowChampion, By: Stored}}}) {
		for _, r := range t.Rows {
			if !slices.ContainsFunc(rows, func(o Row) bool { return o.Name == r.Name }) {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// Free returns a table of methods by name. Besides those of Methods,
// imputer:STRATEGY and paper:STRATEGY are imputers of either preset, and
// model:VERSION is a version of a model store.
func Free(names []string, mode impute.Mode) (Table, error) {
	t := Table{Name: "methods", About: "Methods as named.", Mode: mode}
	all := Methods()
	for _, name := range names {
		if i := slices.IndexFunc(all, func(r Row) bool { return r.Name == name }); i >= 0 {
			t.Rows = append(t.Rows, all[i])
			continue
		}
		preset, strategy, _ := strings.Cut(name, ":")
		switch preset {
		case "model":
			t.Rows = append(t.Rows, Row{Name: name, By: Stored})
		case "imputer":
			t.Rows = append(t.Rows, Row{Name: name, By: Calibrated, Network: Network{Preset: presetLacuna, Strategy: strategy}})
		case presetPaper:
			t.Rows = append(t.Rows, Row{Name: name, By: OneStep, Network: Network{Preset: presetPaper, Strategy: strategy}})
		default:
			return t, fmt.Errorf("method is %q, must be imputer:STRATEGY, paper:STRATEGY, model:VERSION or one of %v", name, namesOf(all))
		}
	}
	return t, t.Validate()
}

func namesOf(rows []Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Name
	}
	return out
}

// paper is the published imputer with a strategy, which names the row.
func paper(strategy string) Row {
	return Row{Name: strategy, By: OneStep, Network: Network{Preset: presetPaper, Strategy: strategy}}
}

// published is the method of the paper as it is printed: pixel anchors, weight
// and steps of guidance from its ranges, and no search for a better strength.
func published() Row {
	r, g := paper("guided"), prior.PaperGuidance()
	r.Name, r.Network.Guidance = presetPaper, &Guidance{Anchor: g.Anchor, Rho: g.Rho, Weight: g.Weight, Steps: g.Steps}
	return r
}

// ambient is AmbientDiff: random pixels, with its loss on the query pixels.
func ambient(share float64) Row {
	return Row{Name: fmt.Sprintf("ambientdiff-%.0f", 100*share), By: OneStep, Network: Network{Preset: presetPaper, Strategy: fmt.Sprintf("pixel:%g", share)}}
}

// ambientObserved is AmbientDiff with its loss on all observed pixels.
func ambientObserved() Row {
	r := ambient(0.3)
	r.Name, r.Network.LossOn = "ambientdiff-30-observed", learn.OnObserved
	return r
}

// dindiff draws members from noise; Default sets their number.
func dindiff() Row {
	return Row{Name: "dindiff", By: DINDiff, Network: Network{Preset: presetPaper, Strategy: "empirical"}}
}

// missdiff trains without a partition: its diffusion covers the whole sea and is
// conditioned on the visible cells.
func missdiff() Row {
	c := baselines.DefaultSampler()
	c.Blend, c.Scope = baselines.Diffusion, baselines.ScopeSea
	return Row{Name: "missdiff", By: Sampled, Network: Network{Preset: presetPaper, Strategy: "everything"}, Sampler: Sampler{"iterative", c}}
}

// vit is a row with a vision transformer in place of the UNet.
func vit(r Row) Row {
	r.Name, r.Network.Backbone = r.Name+"-vit", nn.BackboneViT
	return r
}

// imputer is the product: the preset lacuna, calibrated.
func imputer() Row {
	return Row{Name: "imputer", By: Calibrated, Network: Network{Preset: presetLacuna, Strategy: "guided"}}
}

func members() Row {
	r := imputer()
	r.Name, r.By = "members", Members
	return r
}

func ensemble() Row {
	r := imputer()
	r.Name, r.By = "ensemble", Ensemble
	return r
}

// texture goes from the mean, which is smooth, to a member, which is not.
func texture() []Row {
	rows := []Row{{Name: "oi", By: OI}}
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		r := imputer()
		r.Name, r.By, r.Texture = fmt.Sprintf("texture-%g", share), Textured, share
		rows = append(rows, r)
	}
	return rows
}

// dincae sees composites of the days around, as others do.
func dincae() Row {
	return Row{Name: "dincae", By: Calibrated, Network: Network{
		Preset: presetLacuna, Strategy: "empirical", Supervised: true, Extras: &impute.Extras{Last: true, Next: true},
	}}
}

// sampled is a row whose network answers by a sampler.
func sampled(r Row, name, sampler string, change func(*baselines.SamplerConfig)) Row {
	c := baselines.DefaultSampler()
	change(&c)
	r.Name, r.By, r.Sampler = name, Sampled, Sampler{sampler, c}
	return r
}

func samplers() []Row {
	row := func(name, sampler string, change func(*baselines.SamplerConfig)) Row {
		return sampled(paper("guided"), name, sampler, change)
	}
	none := func(*baselines.SamplerConfig) {}
	draws := func(c *baselines.SamplerConfig) { c.Draws = 10 }
	printed := func(c *baselines.SamplerConfig) { c.Draws, c.Blend = 10, baselines.Printed }
	observed := func(c *baselines.SamplerConfig) { c.Scope = baselines.ScopeObserved }
	return []Row{
		row("direct", "direct", none), row("direct-10-contexts", "direct", draws),
		row("proximal", "proximal", none), row("proximal-10-contexts", "proximal", draws),
		row("iterative", "iterative", none), row("resampling", "resampling", none), row("recursive", "recursive", none),
		row("iterative-printed", "iterative", printed), row("resampling-printed", "resampling", printed), row("recursive-printed", "recursive", printed),
		row("iterative-observed", "iterative", observed), row("recursive-observed", "recursive", observed),
		published(), sampled(published(), "paper-10-contexts", "direct", draws),
	}
}

// contexts are direct projections over 1 to 16 contexts, beside one of all that
// is visible.
func contexts() []Row {
	rows := []Row{paper("guided"), published()}
	for _, k := range []int{1, 2, 4, 8, 16} {
		draws := func(c *baselines.SamplerConfig) { c.Draws = k }
		rows = append(rows, sampled(paper("guided"), fmt.Sprintf("guided-contexts-%d", k), "direct", draws),
			sampled(published(), fmt.Sprintf("paper-contexts-%d", k), "direct", draws))
	}
	return rows
}

// sensitivity is the grid over the ranges that the paper names, around its own
// settings.
func sensitivity() []Row {
	rows := []Row{paper("guided"), published()}
	own := *published().Network.Guidance
	for _, rho := range []float64{0.6, 0.8, 1} {
		for _, weight := range []float64{80, 140, 200} {
			for _, steps := range []int{10, 20} {
				r, g := paper("guided"), Guidance{Anchor: prior.AnchorPixel, Rho: rho, Weight: weight, Steps: steps}
				r.Name, r.Network.Guidance = fmt.Sprintf("rho-%g-weight-%g-steps-%d", rho, weight, steps), &g
				if g != own { // that one is there already
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

func anchors() []Row {
	rows := []Row{paper("guided"), published()}
	for _, anchor := range []prior.Anchor{prior.AnchorPixel, prior.AnchorCoherent} {
		for _, rho := range []float64{1, 0.8, 0.6} {
			if anchor == prior.AnchorCoherent && rho == 1 {
				continue // at rho 1 both anchors are the whole observation
			}
			r := paper("guided")
			r.Name = fmt.Sprintf("anchor-%s-%g", anchor, rho)
			r.Network.Guidance = &Guidance{Anchor: anchor, Rho: rho}
			rows = append(rows, r)
		}
	}
	return rows
}

// temporal adds the inputs from the days around, one after the other, to
// networks that are otherwise the product's.
func temporal() []Row {
	row := func(name string, mode impute.Mode, extras impute.Extras) Row {
		return Row{Name: name, By: OneStep, Mode: mode, Network: Network{Preset: presetLacuna, Strategy: "empirical", Extras: &extras}}
	}
	around := impute.Extras{Last: true, Next: true}
	background, analysis := around, around
	background.Background, analysis.Analysis = true, true
	return []Row{
		row("one-frame", impute.Single, impute.Extras{}),
		row("last", impute.Past, impute.Extras{Last: true}),
		row("last-next-past", impute.Past, around), row("last-next-delayed", impute.Delayed, around),
		row("background-past", impute.Past, background), row("background-delayed", impute.Delayed, background),
		row("analysis-past", impute.Past, analysis), row("analysis-delayed", impute.Delayed, analysis),
		row("around-withheld", impute.Single, around),
	}
}
