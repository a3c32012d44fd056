package seas

import (
	"context"
	"errors"
	"math"

	"lacuna/pipeline/learn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
)

// mixed is a source that draws a sea for each example, and lets that sea give it.
type mixed struct {
	seas   []learn.Repetition
	upTo   []float64 // for each sea the share of all up to it
	choice noise.Stream
}

// newMixed returns the examples of seas with so many partitions of each patch,
// balanced by a rule.
func newMixed(train samples.Train, seas []*sea, perPatch int, balance string, seed uint64) (mixed, error) {
	m := mixed{choice: noise.New(seed, "sea of an example")}
	total := 0.0
	for _, s := range seas {
		r, err := repeated(train, s, perPatch, seed)
		if err != nil {
			return m, err
		}
		share := 1.0
		if balance == balanceRoot {
			share = math.Sqrt(float64(len(s.refs)))
		}
		total += share
		m.seas, m.upTo = append(m.seas, r), append(m.upTo, total)
	}
	if len(m.seas) == 0 {
		return m, errors.New("no sea to learn from is left")
	}
	for i := range m.upTo {
		m.upTo[i] /= total
	}
	return m, nil
}

// repeated returns the examples of one sea: the gaps of its other days laid over a
// patch. The partitions of a patch are the same in every training.
func repeated(train samples.Train, s *sea, perPatch int, seed uint64) (learn.Repetition, error) {
	return learn.Repeated(train, s.refs, partition.Empirical(train), perPatch, seed)
}

// Example implements learn.Source.
func (m mixed) Example(ctx context.Context, n uint64) (learn.Example, error) {
	at, k := m.choice.Rand(n).Float64(), 0
	for k < len(m.seas)-1 && at >= m.upTo[k] {
		k++
	}
	return m.seas[k].Example(ctx, n)
}
