package jobs

import (
	"context"

	"lacuna/pipeline/classical"
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

	Curve      []skill.ReliabilityBin `json:"curve"`
	Overlooked overlooked             `json:"overlooked"`
	// Deciles hold the error of the job's network at scored cells by their P(query
	// | context), least first. Only where it falls from each to the next does the
	// probability say how far a filled cell can be trusted.
	Deciles  []skill.Quantile `json:"rmse_by_decile"`
	Monotone bool             `json:"monotone"`
}

// overlooked counts the cells of which the map says that they are asked for and
// the classifier that they are not, under their context: the mean over contexts
// hides that the network was never asked for them there.
type overlooked struct {
	Cells   int `json:"cells"`
	Queried int `json:"queried"` // number of them that were query all the same
}

// overlookedOf compares the probabilities of a map with those of a classifier.
func overlookedOf(mapped, said []float64, asked []bool) overlooked {
	const some, none = 0.05, 0.01
	var o overlooked
	for i, p := range said {
		if mapped[i] > some && p < none {
			o.Cells++
			if asked[i] {
				o.Queried++
			}
		}
	}
	return o
}

// classify trains P(query | context) and scores it on held-out overlays,
// beside the map of the frequency of query cells in training, which ignores the
// context, and against the errors of the job's network.
func (b *bench) classify(ctx context.Context, j job, s *series) error {
	m, held, source, err := b.examples(j, s)
	if err != nil {
		return err
	}
	cfg := j.settings.Train
	cfg.Workers, cfg.CacheMB = b.workers, b.cacheMB
	c, _, err := b.runners.Trainer().TrainReliability(ctx, m, source, learn.ReliabilityConfig(cfg), train.Hooks{})
	if err != nil {
		return err
	}
	defer c.Close()
	network, _, err := b.runners.Trainer().Train(ctx, m, source, cfg, train.Hooks{})
	if err != nil {
		return err
	}
	defer network.Close()
	static, err := frequencies(ctx, m.Train, source)
	if err != nil {
		return err
	}
	overlays, err := held.Overlays(j.settings.Overlays)
	if err != nil {
		return err
	}
	around := impute.Surroundings{Days: held}
	if cfg.Design.Extras.Analysis {
		around.Analyser = impute.OI{Days: held, Settings: impute.ServingOI(classical.DefaultOI(held.Grid()))}
	}
	var a answers
	for _, o := range overlays {
		in, err := around.Analysed(o.Ref, o.Visible, j.settings.Mode)
		if err != nil {
			return err
		}
		p, err := c.Probability(ctx, in)
		if err != nil {
			return err
		}
		filled, err := network.Predict(ctx, []impute.Inputs{in})
		if err != nil {
			return err
		}
		a.add(o, p, held.CutMap(static, o.Window), filled[0].Mean)
	}
	line := a.line(j.Name)
	b.log.Info("reliability", "line", line)
	return b.append(line)
}

// answers are those of a classifier, a map and a network on overlays.
type answers struct {
	said, mapped    []float64 // P(query) of the cells that were not visible
	asked           []bool
	trusted, missed []float64 // P(query) and error of the scored cells
}

func (a *answers) add(o samples.Overlay, said, mapped, filled []float32) {
	for k, sea := range o.Sea {
		if sea && !o.Visible[k] {
			a.said, a.mapped, a.asked = append(a.said, float64(said[k])), append(a.mapped, float64(mapped[k])), append(a.asked, o.Scored[k])
		}
		if o.Scored[k] {
			a.trusted, a.missed = append(a.trusted, float64(said[k])), append(a.missed, float64(filled[k]-o.Values[k]))
		}
	}
}

func (a *answers) line(name string) brierLine {
	line := brierLine{
		Job: name, Cells: len(a.said), Classifier: skill.Brier(a.said, a.asked), Map: skill.Brier(a.mapped, a.asked),
		Curve: skill.Reliability(a.said, a.asked, 10), Overlooked: overlookedOf(a.mapped, a.said, a.asked),
		Deciles: skill.RMSEByQuantile(a.trusted, a.missed, 10),
	}
	line.Monotone = len(line.Deciles) > 1
	for i := 1; i < len(line.Deciles); i++ {
		line.Monotone = line.Monotone && line.Deciles[i].RMSE < line.Deciles[i-1].RMSE
	}
	share := 0.0
	for _, asked := range a.asked {
		if asked {
			share += 1 / float64(len(a.asked))
		}
	}
	line.Constant = share * (1 - share)
	return line
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
