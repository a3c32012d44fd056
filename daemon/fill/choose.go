package fill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lacuna/internal/frugal"
	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/products"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// A Case is a granule for which a method has to be chosen.
type Case struct {
	Dataset string
	Granule ingest.Granule
	Fill    infer.Config // the dataset's configuration
	// Scaling learns the scaling of the dataset from its own days, for a model
	// that was trained elsewhere. With too few days its error is
	// samples.ErrFewDays.
	Scaling func() (LocalScaling, error)
	// Evidence returns how far scored days of the dataset say that the model of a
	// choice should be followed, which was not trained and judged on it; nil: no
	// day was scored.
	Evidence func(c Choice) skill.Trust
}

// LocalScaling is the scaling of a dataset for a model that was trained
// elsewhere.
type LocalScaling struct {
	samples.Scaling
	Days int // number of days that it was learned from
}

// LearnLocalScaling returns the scaling of fields of one dataset, for a model
// that was trained elsewhere.
func LearnLocalScaling(fields []field.Field, sea field.Mask, tr field.Transform) (LocalScaling, error) {
	series, err := samples.New(fields, sea, tr)
	if err != nil {
		return LocalScaling{}, err
	}
	scaling, err := samples.LearnScaling(series)
	days := len(series.Days)
	frugal.LetGo(4 * days * len(scaling.Mean)) // of the series
	return LocalScaling{Scaling: scaling, Days: days}, err
}

// A Choice is the method that fills a granule, with its model.
type Choice struct {
	Fill    infer.Config  // with the chosen method
	Model   *infer.Model  // for the method model; else nil
	Scaling *LocalScaling // for a model that was trained elsewhere
	Trust   *skill.Trust  // how far the model is followed; nil: all the way
	// Elsewhere is what is known of the model from seas that it never saw; nil: nothing.
	Elsewhere *skill.Elsewhere
	Why       string // reason why no better method is used; empty: this is the best one, or the configured one
}

// String returns the choice in words.
func (c Choice) String() string {
	text := methodPhrase[c.Fill.Method]
	switch {
	case c.Scaling != nil:
		text = fmt.Sprintf("a starter model (%s), scaled by %d days of the dataset", c.Model.Name(), c.Scaling.Days)
	case c.Model != nil:
		text = "model " + c.Model.Name()
	}
	if c.Trust != nil {
		text += ", " + follows(*c.Trust)
	}
	if c.Why != "" {
		text += ": " + c.Why
	}
	return text
}

// followed reports whether a model has a part in what is filled.
func (c Choice) followed() bool { return c.Model != nil && (c.Trust == nil || c.Trust.Weight > 0) }

// weigh adds how far the model is followed, which was not judged on the dataset.
func (c Choice) weigh(of Case) Choice {
	c.Trust = &skill.Trust{}
	if of.Evidence != nil {
		*c.Trust = of.Evidence(c)
	}
	c.Trust.Wanted = c.Elsewhere.Days()
	return c
}

// Choose returns the method that fills a granule now. For the method auto it is
// the champion of the dataset, else the starter of the same quantity, else
// optimal interpolation; for the method model it is the champion, else optimal
// interpolation; any other method stays as configured. A model that was not
// trained and judged on the dataset is followed as far as the evidence of the
// case goes. The reason why a better
// one cannot be used is in Why, and is logged when it changes. A nil m has no
// models and chooses optimal interpolation.
func (m *Models) Choose(c Case) Choice {
	if c.Fill.Method != infer.MethodModel && c.Fill.Method != infer.MethodAuto {
		return Choice{Fill: c.Fill}
	}
	if m == nil {
		return interpolation(c, "no model can be used here")
	}
	choice, err := m.choose(c)
	if errors.Is(err, context.Canceled) { // the service stops: nothing was chosen
		return choice
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.chosen[c.Dataset]; !ok || before.Why != choice.Why || before.Model != choice.Model || before.followed() != choice.followed() {
		m.log.Info("filler chosen", "dataset", c.Dataset, "filler", choice.String())
	}
	m.chosen[c.Dataset] = choice
	return choice
}

// Chosen returns the choice for the last granule of a dataset; false before the
// first.
func (m *Models) Chosen(dataset string) (Choice, bool) {
	if m == nil {
		return Choice{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.chosen[dataset]
	return c, ok
}

func interpolation(c Case, why string) Choice {
	c.Fill.Method = "oi"
	return Choice{Fill: c.Fill, Why: why}
}

// choose returns the choice, and the error that kept it from a better one.
func (m *Models) choose(c Case) (Choice, error) {
	method := c.Fill.Method
	c.Fill.Method = infer.MethodModel
	model, err := m.Champion(c.Dataset)
	if err == nil {
		choice := Choice{Fill: c.Fill, Model: model}
		if !m.judgedOn(c.Dataset) {
			choice = choice.weigh(c)
		}
		return choice, nil
	}
	why := "the champion cannot be used: " + err.Error()
	if errors.Is(err, modelstore.ErrNoChampion) {
		why = "the dataset has no model of its own yet"
	}
	if method == infer.MethodModel {
		return interpolation(c, why), err
	}
	starter, reason := StarterFor(m.parts.Starters, c.Granule)
	if starter == nil {
		return interpolation(c, why+", and "+reason), err
	}
	if !infer.Daily(c.Fill.Step) {
		return interpolation(c, why+", and starter models learned from daily fields, which these are not"), err
	}
	scaling, err := c.Scaling()
	if errors.Is(err, samples.ErrFewDays) { // the count is left out: the reason would change, and be logged, with every granule
		return interpolation(c, fmt.Sprintf("%s, and too few days to scale a starter model by, which takes %d", why, samples.ScalingDays)), err
	}
	if err != nil {
		return interpolation(c, fmt.Sprintf("%s, and a starter model cannot be scaled: %v", why, err)), err
	}
	model, err = m.starter(starter)
	if err != nil {
		return interpolation(c, fmt.Sprintf("%s, and the starter does not load: %v", why, err)), err
	}
	choice := Choice{Fill: c.Fill, Model: model, Scaling: &scaling, Why: why}
	if e := starter.Card.Elsewhere; e != nil {
		choice.Elsewhere = &skill.Elsewhere{Share: e.Share, Spread: e.Spread, Seas: e.Seas}
	}
	return choice.weigh(c), nil
}

// starter returns the loaded model of a starter.
func (m *Models) starter(v *modelstore.Version) (*infer.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if model := m.starters[v.ID]; model != nil {
		return model, nil
	}
	device, err := m.open()
	if err != nil {
		return nil, err
	}
	model, err := LoadModel(v, device)
	if err != nil {
		return nil, err
	}
	m.pace.attach(model, device)
	m.starters[v.ID] = model
	return model, nil
}

// StarterFor returns the starter of the quantity of a granule, or nil and the
// reason why none fits.
func StarterFor(starters []*modelstore.Version, g ingest.Granule) (*modelstore.Version, string) {
	name := standardName(g)
	switch {
	case name == "" && g.Source.Variable == "": // a pack
		return nil, "the data do not say what they are of, so no starter fits"
	case name == "":
		return nil, "the quantity of the variable " + g.Source.Variable + " is not known, so no starter fits"
	}
	for _, v := range starters {
		if slices.Contains(namesOf(v.Card), name) && v.Card.Transform == g.Transform.String() {
			return v, ""
		}
	}
	return nil, fmt.Sprintf("there is no starter for %s in the space %v", name, g.Transform)
}

// standardName returns the CF standard name of a granule's quantity: that of its
// variable, else that of its product; empty where neither has one.
func standardName(g ingest.Granule) string {
	if v, ok := g.Source.Var(g.Source.Variable); ok {
		for _, a := range v.Attrs {
			if text, isText := a.Value.(string); isText && a.Name == "standard_name" && text != "" {
				return strings.ToLower(text) // as package ingest compares them
			}
		}
	}
	if names := standardNames(g.Product); len(names) > 0 {
		return names[0]
	}
	return ""
}

// standardNames returns the CF names of the quantity of a known product, the
// usual one first.
func standardNames(product string) []string {
	p := products.Named(product)
	if p.StandardName == "" {
		return nil
	}
	return append([]string{p.StandardName}, p.StandardNames...)
}

// namesOf returns the CF names of the quantity of a starter: those of the product
// whose variable it was trained on, however that is spelled.
func namesOf(card modelstore.Card) []string {
	for _, p := range products.All() {
		if slices.ContainsFunc(append(p.Variables, p.Variable), func(v string) bool { return strings.EqualFold(v, card.Variable) }) {
			return standardNames(p.Name)
		}
	}
	return nil
}
