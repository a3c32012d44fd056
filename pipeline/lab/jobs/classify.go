package jobs

import (
	"context"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/train"
)

// brierLine is the line of a classifier of P(query | context) in the results.
type brierLine struct {
	Job        string  `json:"job"`
	Cells      int     `json:"cells"`
	Classifier float64 `json:"brier"`
	Map        float64 `json:"brier_of_map"` // Brier score of the frequency of each cell of the grid
	Constant   float64 `json:"brier_of_constant"`
}

// classify trains P(query | context) and scores it on held-out overlays,
// beside the map of the frequency of query cells in training, which ignores the
// context.
func (b *bench) classify(ctx context.Context, j job, s *series) error {
	m, held, source, err := b.examples(j, s)
	if err != nil {
		return err
	}
	cfg := learn.ReliabilityConfig(j.settings.Train)
	cfg.Workers, cfg.CacheMB = b.workers, b.cacheMB
	c, _, err := b.runners.Trainer().TrainReliability(ctx, m, source, cfg, train.Hooks{})
	if err != nil {
		return err
	}
	defer c.Close()
	static, err := frequencies(ctx, m.Train, source)
	if err != nil {
		return err
	}
	overlays, err := held.Overlays(j.settings.Overlays)
	if err != nil {
		return err
	}
	var said, mapped []float64
	var asked []bool
	around := impute.Surroundings{Days: held}
	for _, o := range overlays {
		p, err := c.Probability(ctx, around.Inputs(o.Ref, o.Visible, impute.Single))
		if err != nil {
			return err
		}
		often := held.CutMap(static, o.Window)
		for k, sea := range o.Sea {
			if sea && !o.Visible[k] {
				said, mapped, asked = append(said, float64(p[k])), append(mapped, float64(often[k])), append(asked, o.Scored[k])
			}
		}
	}
	line := brierLine{Job: j.Name, Cells: len(said), Classifier: skill.Brier(said, asked), Map: skill.Brier(mapped, asked)}
	share := 0.0
	for _, a := range asked {
		if a {
			share += 1 / float64(len(asked))
		}
	}
	line.Constant = share * (1 - share)
	b.log.Info("reliability", "line", line)
	return b.append(line)
}

// frequencies returns for each cell of the grid how often it was query when it
// was not context.
func frequencies(ctx context.Context, data samples.Train, source learn.Source) ([]float32, error) {
	const examples = 20000 // covers every cell several hundred times
	width := data.Grid().Width()
	hidden, asked := make([]float32, data.Grid().Len()), make([]float32, data.Grid().Len())
	for n := range uint64(examples) {
		l, err := source.Example(ctx, n)
		if err != nil {
			return nil, err
		}
		w := l.Ref.Window
		for k, shown := range l.Context {
			row, col := w.Row+k/w.Width, w.Col+k%w.Width
			if shown || row >= data.Grid().Height() || col >= width {
				continue
			}
			hidden[row*width+col]++
			if l.Query[k] {
				asked[row*width+col]++
			}
		}
	}
	for i := range asked {
		asked[i] = (asked[i] + 1) / (hidden[i] + 2) // one half for a cell that was never hidden
	}
	return asked, nil
}
