package learn

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/impute"
)

// Analyses keeps analyses of contexts that come up again, so that one is made
// once for all networks that learn from it. It is safe for concurrent use. The
// zero value keeps nothing.
type Analyses struct {
	budgetBytes int64
	used        atomic.Int64
	kept        sync.Map // analysisKey to analysis
}

type analysis struct{ value, sigma []float32 }

// NewAnalyses returns an empty store that takes up to so much memory. What
// does not fit is made again each time.
func NewAnalyses(budgetMB int) *Analyses { return &Analyses{budgetBytes: int64(budgetMB) << 20} }

// analysisBytes is what the analysis of a cell takes: a value and its sigma.
const analysisBytes = 2 * 4

// Room returns how many analyses of so many cells it takes in all.
func (a *Analyses) Room(cells int) int {
	return int(a.budgetBytes / int64(analysisBytes*max(cells, 1)))
}

// analysisKey names the analysis of a context.
type analysisKey struct {
	example uint64
	mode    impute.Mode
}

// add puts the analysis of an example into in, and keeps it for the next time
// where there is one and room for it.
func (a *Analyses) add(in *impute.Inputs, l Example, mode impute.Mode, around impute.Surroundings) error {
	key := analysisKey{l.Key, mode}
	if kept, ok := a.kept.Load(key); ok && l.Key != 0 {
		b := kept.(analysis)
		in.Analysis, in.AnalysisSigma = b.value, b.sigma
		return nil
	}
	if err := around.Analyse(l.Ref, in, mode); err != nil || l.Key == 0 {
		return err
	}
	size := int64(analysisBytes * len(in.Analysis))
	if a.used.Add(size) > a.budgetBytes {
		a.used.Add(-size)
		return nil
	}
	if _, was := a.kept.LoadOrStore(key, analysis{in.Analysis, in.AnalysisSigma}); was {
		a.used.Add(-size)
	}
	return nil
}

// Prepare makes every analysis that examples of a repetition can ask for in the
// given modes and keeps it in m's Analyses, with so many goroutines. A training
// does the same on its way; this is for one that must not wait.
func (m Material) Prepare(ctx context.Context, r Repetition, modes []impute.Mode, workers int) error {
	around := m.surroundings()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(workers, 1))
	for patch := range r.refs {
		group.Go(func() error {
			for k := range r.perPatch {
				l, err := r.partition(ctx, patch, k)
				if err != nil {
					return err
				}
				for _, mode := range modes {
					in := impute.Inputs{Visible: l.Context}
					if err := m.Analyses.add(&in, l, mode, around); err != nil {
						return err
					}
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
