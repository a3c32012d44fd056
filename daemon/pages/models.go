package pages

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/ops"
)

// models is the page of the model store and the daily skill.
type models struct {
	reading
	store string
	now   func() time.Time
}

// shownPromotions bounds the log on the page: some years of weekly judgements.
const shownPromotions = 100

// Models implements ops.Models. Files of the store that cannot be read are listed
// as problems.
func (w models) Models(context.Context) (ops.ModelBook, error) {
	var book ops.ModelBook
	if w.store == "" {
		return book, nil
	}
	store := modelstore.New(w.store, w.now)
	problem := func(err error) {
		if err != nil {
			book.Problems = append(book.Problems, err.Error())
		}
	}
	versions, bad, err := store.List()
	problem(err)
	for _, err := range bad {
		problem(err)
	}
	states, err := store.States()
	problem(err)
	for _, v := range versions {
		book.Versions = append(book.Versions, versionRow(v, states[v.ID]))
	}
	slices.SortStableFunc(book.Versions, func(a, b ops.Version) int { return b.Created.Compare(a.Created) })
	log, err := store.Log()
	problem(err)
	slices.Reverse(log)
	for _, e := range log[:min(len(log), shownPromotions)] {
		book.Promotions = append(book.Promotions, ops.Promotion{
			At: e.Time, Action: string(e.Action), Dataset: e.Dataset, Version: e.Version, Previous: e.Previous, By: e.By, Why: e.Why,
		})
	}
	return book, nil
}

// Skill implements ops.Models.
func (w models) Skill(ctx context.Context, dataset string, n int) ([]ops.Skill, error) {
	skills, err := w.book.Skills(ctx, ledger.SkillQuery{Dataset: dataset, Limit: n})
	return convert.Each(skills, skillRow), err
}

func skillRow(s ledger.Skill) ops.Skill {
	return ops.Skill{
		Day: s.Day, Kind: string(s.Kind), Method: s.Method, MSE: s.MSE, Bias: s.Bias, Within90: s.Covered90, Pixels: s.Pixels,
	}
}

// Picture implements ops.Models.
func (w models) Picture(_ context.Context, version string) ([]byte, error) {
	if w.store == "" {
		return nil, ops.ErrNotFound
	}
	v, err := modelstore.New(w.store, w.now).Load(version)
	if errors.Is(err, modelstore.ErrNotFound) || err == nil && !v.Has(modelstore.PictureFile) {
		return nil, ops.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return v.ReadFile(modelstore.PictureFile)
}

// versionRow returns a version as the page shows it.
func versionRow(v *modelstore.Version, states []string) ops.Version {
	c := v.Card
	row := ops.Version{
		ID: v.ID, Dataset: c.Dataset, Kind: c.Kind, Parent: c.Parent, States: states, Created: c.Created,
		From: c.Data.From, To: c.Data.To, TrainDays: c.Split.TrainDays, Bytes: v.Bytes(),
		Pictured: v.Has(modelstore.PictureFile),
		Hardware: cmp.Or(c.Training.Hardware, c.Engine.Device), TrainingSeconds: c.Training.Seconds, ScoredOn: c.Scores.On,
	}
	for _, n := range c.Networks {
		row.Parameters += n.Parameters
	}
	names := slices.Concat(slices.Collect(maps.Keys(c.Scores.Challenger)), slices.Collect(maps.Keys(c.Scores.Champion)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		row.Scores = append(row.Scores, ops.Score{
			Name: name, Champion: scoreOf(c.Scores.Champion, name), Challenger: scoreOf(c.Scores.Challenger, name),
		})
	}
	return row
}

// scoreOf returns a score, NaN where it was not measured.
func scoreOf(scores map[string]float64, name string) float64 {
	if x, ok := scores[name]; ok {
		return x
	}
	return math.NaN()
}
