package version

import (
	"context"
	"fmt"
	"math"
	"slices"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/train"
)

// makeReliability trains the classifier of P(query | context), and counts how
// often cells are query. A classifier that knows no more than that is left out:
// the map of the counts is published in its place.
func (r *run) makeReliability(ctx context.Context) error {
	if err := r.counted.or(ctx, r.countQueries); err != nil {
		return err
	}
	if r.s.Reliability.Steps == 0 {
		return nil
	}
	report := &train.Report{}
	r.eval.Reports.Reliability = report
	data, err := r.trainNetwork(ctx, training{part: PartReliability, phase: PhaseReliability, cfg: r.s.Reliability, report: report},
		func(source learn.Source, hooks train.Hooks) (saver, train.Report, error) {
			return r.trainer.TrainReliability(ctx, r.material, source, r.s.Reliability, hooks)
		})
	if err != nil {
		return err
	}
	score := &ReliabilityScore{}
	known, err := r.folder.load(reliabilityScoreFile, score)
	if err != nil {
		return err
	}
	if !known {
		if *score, err = r.scoreReliability(ctx, data); err != nil {
			return err
		}
		if err := r.folder.save(reliabilityScoreFile, score); err != nil {
			return err
		}
	}
	if r.eval.Reliability = score; !score.Kept {
		delete(r.parts, PartReliability)
	}
	return nil
}

// ReliabilityScore compares a classifier of P(query | context) with the mean
// share of query cells.
type ReliabilityScore struct {
	Cells int     `json:"cells"` // cells of held-out windows that were not context, in several partitions
	Brier float64 `json:"brier"`
	// Constant is the Brier score of the best constant for every cell: their mean
	// share. That of training windows would be beaten by chance where few days choose.
	Constant float64 `json:"constant"`
	Kept     bool    `json:"kept"`
}

// reliabilityScoreFile keeps the score in the checkpoint folder.
const reliabilityScoreFile = "reliability-score.json"

// scoreReliability asks a classifier about partitions of held-out windows, made
// as those that it learned from.
func (r *run) scoreReliability(ctx context.Context, file []byte) (ReliabilityScore, error) {
	classifier, err := impute.LoadReliability(file, r.runner)
	if err != nil {
		return ReliabilityScore{}, err
	}
	defer classifier.Close()
	windows := make([]samples.Ref, len(r.choosing))
	for i, o := range r.choosing {
		windows[i] = o.Ref
	}
	var said []float64
	var asked []bool
	queries := 0
	err = r.partitions(ctx, spreadPatches(windows, len(windows), r.chooseSide.Cut), "held-out P(query)", func(p samples.Patch, part partition.Parts) error {
		say, err := classifier.Probability(ctx, r.aroundChoose.Inputs(p.Ref, part.Context, impute.Single))
		for cell, sea := range p.Sea {
			if err == nil && sea && !part.Context[cell] {
				said, asked = append(said, float64(say[cell])), append(asked, part.Query[cell])
				if part.Query[cell] {
					queries++
				}
			}
		}
		return err
	})
	if err != nil || len(asked) == 0 {
		return ReliabilityScore{}, err
	}
	share := float64(queries) / float64(len(asked))
	s := ReliabilityScore{Cells: len(asked), Brier: skill.Brier(said, asked), Constant: share * (1 - share)}
	const tie = 0.995 // goes to the map
	s.Kept = s.Brier < tie*s.Constant
	return s, nil
}

// partitions calls each with several partitions of every patch, drawn as for
// training.
func (r *run) partitions(ctx context.Context, patches []samples.Patch, name string, each func(samples.Patch, partition.Parts) error) error {
	const draws = 4 // with one, scores of 200 windows differ by more than a classifier gains
	for n := range uint64(draws) {
		parts, err := r.strategy.Partition(ctx, patches, stream(r.s, name).Sub(n))
		if err != nil {
			return fmt.Errorf("draw partitions for P(query): %w", err)
		}
		for i, part := range parts {
			if err := each(patches[i], part); err != nil {
				return err
			}
		}
	}
	return nil
}

// queriesFile keeps the counts of P(query) in the checkpoint folder.
const queriesFile = "queries-by-grid.json"

// countQueries draws partitions for the map of P(query) of each grid, and for
// the lowest P(query) of all.
func (r *run) countQueries(ctx context.Context) error {
	known, err := r.folder.load(queriesFile, &r.queries)
	if err != nil {
		return err
	}
	if !known {
		for i, p := range r.train.Places() {
			of := slices.DeleteFunc(slices.Clone(r.own), func(ref samples.Ref) bool { return r.train.Place(ref.Day) != p })
			q := partition.NewQueryMap(p.Grid.Height(), p.Grid.Width())
			patches := spreadPatches(of, r.s.Pool.Size/2, r.train.Cut)
			if err := partition.DrawQueries(ctx, r.strategy, patches, 2, q, stream(r.s, "queries").Sub(uint64(i))); err != nil {
				return err
			}
			r.queries = append(r.queries, q)
		}
		if err := r.folder.save(queriesFile, r.queries); err != nil {
			return err
		}
	}
	return r.claimQueries(ctx)
}

// lowestFile keeps the lowest P(query) in the checkpoint folder.
const lowestFile = "lowest-query.json"

// claimQueries draws some observations often enough to say that each of their
// cells is query at times.
func (r *run) claimQueries(ctx context.Context) error {
	if r.s.Judging.Observed == 0 {
		return nil
	}
	lowest := &partition.LowestQuery{}
	known, err := r.folder.load(lowestFile, lowest)
	if err != nil {
		return err
	}
	if !known {
		some := spreadPatches(r.own, r.s.Judging.Observed, r.train.Cut)
		if *lowest, err = partition.DrawLowest(ctx, r.strategy, some, partition.ClaimDraws, stream(r.s, "lowest P(query)")); err != nil {
			return err
		}
		if err := r.folder.save(lowestFile, lowest); err != nil {
			return err
		}
	}
	r.eval.Queries = lowest
	return nil
}

// fewestDraws is the fewest draws of a cell from which its P(query) is estimated:
// one that was never query in fewer may have been unlucky.
const fewestDraws = 8

// queryShares returns P(query) of a grid as a Scaling keeps it.
func queryShares(q *partition.QueryMap) []float32 {
	out := make([]float32, len(q.Drawn))
	for i, p := range q.Probability() {
		out[i] = -1
		if q.Drawn[i] >= fewestDraws {
			out[i] = float32(math.Round(p*1000) / 1000) // draws are known no better
		}
		if p > 0 && out[i] == 0 {
			out[i] = 0.001 // nothing means never
		}
	}
	return out
}
