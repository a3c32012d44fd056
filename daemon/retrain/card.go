package retrain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/version"
)

// card returns the card of the version.
func (t *Training) card(out version.Outcome) (modelstore.Card, error) {
	settings, err := json.Marshal(t.job.Settings)
	if err != nil {
		return modelstore.Card{}, fmt.Errorf("write the card: %w", err)
	}
	card := modelstore.Card{Kind: "trained", Dataset: t.req.Dataset, Variable: t.req.Data[0].Variable}
	if t.parentID != "" {
		card = t.parentCard.Child(t.parentID)
		card.Dataset, card.Variable = t.req.Dataset, t.req.Data[0].Variable // the parent may be of another quantity
	}
	s := t.job.Settings
	card.Schema, card.Created, card.Lacuna = modelstore.CardSchema, time.Now().UTC(), t.req.Lacuna
	card.Elsewhere = t.req.Elsewhere
	if s.Only == version.OnlyCalibration { // the networks are those of the parent
		card.Kind, card.Elsewhere = "calibrated anew", cmp.Or(t.req.Elsewhere, t.parentCard.Elsewhere)
	}
	card.Data = dataOf(t.req.Data)
	card.Data.Beside = granulesOf(t.req.Beside)
	card.Covariates = covariatesOf(out.Evaluation)
	if card.Split, err = t.splitOf(out); err != nil {
		return card, err
	}
	card.Transform = "identity"
	if out.Transform.Log10 {
		card.Transform = "log10"
	}
	values := out.Evaluation.Values
	card.Normalisation = modelstore.Normalisation{Mean: values.Mean, Std: values.Std}
	if out.Scaling != nil {
		card.Normalisation.Std = out.Scaling.Std
	}
	card.Networks = nil
	for _, n := range out.Networks {
		card.Networks = append(card.Networks, modelstore.Network{File: partFiles[n.Part], Backbone: n.Backbone, Size: n.Size, Parameters: int64(n.Weights)})
	}
	card.Settings = map[string]json.RawMessage{"finetune": settings}
	card.Seeds = map[string]uint64{"prior": s.Prior.Seed, "imputer": s.Imputer.Seed}
	card.Scores = scoresOf(out)
	if out.Parts[version.PartCalibration] != nil {
		card.Calibration = modelstore.Calibration{File: modelstore.CalibrationFile, Note: "factors on sigma by distance to the nearest observation"}
	}
	if st := out.Evaluation.Strength; st != nil {
		card.Guidance = st.Weight
	}
	card.Engine = t.device
	card.Training = modelstore.Training{
		Started: t.started.UTC(), Seconds: time.Since(t.started).Seconds(), Steps: stepsOf(out.Evaluation.Reports),
		Hardware: Hardware(), PeakMemoryBytes: PeakMemory(), PeakDeviceBytes: t.memory.peak(), Phases: t.phases,
	}
	if t.resumed {
		card.Note = "the training was interrupted; its time is that of the last part"
	}
	return card, nil
}

// dataOf returns the days and the granules of all series together.
func dataOf(sets []Data) modelstore.Data {
	d := modelstore.Data{From: sets[0].Series.Days[0].Time}
	for _, set := range sets {
		days := set.Series.Days
		if days[0].Time.Before(d.From) {
			d.From = days[0].Time
		}
		if last := days[len(days)-1].Time; last.After(d.To) {
			d.To = last
		}
	}
	d.Granules = granulesOf(sets)
	for name, sum := range sets[0].Covariates { // one grid only may have some
		d.Covariates = append(d.Covariates, modelstore.Granule{Name: name, SHA256: sum})
	}
	slices.SortFunc(d.Covariates, func(a, b modelstore.Granule) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// covariatesOf returns what was found out about covariates.
func covariatesOf(e version.Evaluation) []modelstore.Covariate {
	if e.Covariates == nil {
		return nil
	}
	var all []modelstore.Covariate
	for _, v := range e.Covariates.Judged {
		all = append(all, modelstore.Covariate{Name: v.Name, Used: v.Used, Verdict: v.String()})
	}
	return all
}

// granulesOf returns the granules of sets in order of their names.
func granulesOf(sets []Data) []modelstore.Granule {
	var all []modelstore.Granule
	for _, set := range sets {
		for name, sum := range set.Granules {
			all = append(all, modelstore.Granule{Name: name, SHA256: sum})
		}
	}
	slices.SortFunc(all, func(a, b modelstore.Granule) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// scoresOf returns the scores of all sides by name.
func scoresOf(out version.Outcome) modelstore.Comparison {
	r := out.Evaluation.Ruling
	if r == nil {
		return modelstore.Comparison{}
	}
	table := func(side version.Side) map[string]float64 {
		scores := side.Verdict.Summary.Named()
		if side.LatencySeconds > 0 {
			scores["latency_seconds"] = side.LatencySeconds
		}
		return scores
	}
	c := modelstore.Comparison{
		On:         fmt.Sprintf("%d overlays of days that judge, %s mode", out.Evaluation.Cases, out.Evaluation.Mode),
		Challenger: table(r.Challenger),
	}
	if r.Champion != nil {
		c.Champion = table(*r.Champion)
	}
	if r.Interpolation != nil {
		c.Interpolation = table(*r.Interpolation)
	}
	return c
}

func stepsOf(r version.Reports) int64 {
	steps := int64(0)
	if r.Imputer != nil {
		steps += int64(r.Imputer.Steps)
	}
	if r.Members != nil {
		steps += int64(r.Members.Steps)
	}
	return steps
}
