package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/nn"
)

// A Task is a network to be trained, with its loss and its examples.
type Task struct {
	Kind     string // names network and loss
	Settings any    // the rest of the run's identity, as JSON; a checkpoint with others is refused

	Layout    *nn.Layout
	Loss      Loss
	Optimizer Config // Steps is the length of the run, whatever the schedule
	Seed      uint64 // seed of the first weights

	Dims    [][]int // dimensions of the tensors of a batch; the first is the number of examples
	Scratch int     // numbers that Fill needs to work with
	Fill    Filler
	Workers int               // goroutines that fill batches; the weights do not depend on it
	Fixed   []*tensors.Tensor // further inputs of the loss, the same at every step
}

// NewStep returns the compiled form of a task, without weights.
func (t Task) NewStep(b backends.Backend) (*Step, error) {
	return NewStep(b, t.Layout, t.Optimizer, t.Loss)
}

// Compile makes a step ready for batches of the task.
func (t Task) Compile(step *Step) error { return step.Compile(t.inputs(NewBatch(t.Dims, 0))...) }

// inputs returns the inputs of the loss for a batch.
func (t Task) inputs(b *Batch) []*tensors.Tensor { return slices.Concat(b.tensors, t.Fixed) }

func (t Task) validate() error {
	switch {
	case t.Kind == "":
		return errors.New("train task: kind is empty")
	case t.Optimizer.Steps < 1:
		return fmt.Errorf("train task: steps is %d, must be positive", t.Optimizer.Steps)
	case t.Workers < 1:
		return fmt.Errorf("train task: workers is %d, must be positive", t.Workers)
	}
	return nil
}

// Hooks are called by a run on its way, or steer it. All may be zero.
type Hooks struct {
	// Progress is called after every step.
	Progress func(Progress)
	// Score returns how well weights do on held-out data, less is better; one
	// that is not finite is the worst there is. It is asked for the averaged
	// weights every ScoreEvery steps and at the end.
	Score      func(ctx context.Context, weights []float32) (float64, error)
	ScoreEvery int
	// KeepBest makes the result the weights of the best score, not the last.
	KeepBest bool
	// Patience ends the run after so many scores without a better one, and
	// implies KeepBest; 0: never.
	Patience int
	// Checkpoint is a file that the run goes on from where it exists, and that
	// is written every CheckpointEvery steps, at the end, when the run is
	// cancelled and when it fails.
	Checkpoint      string
	CheckpointEvery int
	// CheckpointPause is the least time between two of CheckpointEvery: a fast
	// device makes many steps a second.
	CheckpointPause time.Duration
	Now             func() time.Time // for CheckpointPause; nil: time.Now
	// From holds weights to begin with; nil: those of the seed.
	From []float32
}

func (h Hooks) keepsBest() bool { return h.KeepBest || h.Patience > 0 }

func (h Hooks) now() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}

// Progress describes a run after one of its steps.
type Progress struct {
	Step, Steps  int
	Loss         float64
	GradientNorm float64
	Score        *float64 // nil: not asked at this step
}

// Report describes a run that ended.
type Report struct {
	Steps     int      `json:"steps"`      // number of steps done
	Resumed   int      `json:"resumed"`    // steps done before this run
	Loss      float64  `json:"loss"`       // mean over the last tenth of the steps
	Score     *float64 `json:"score"`      // score of the result; nil: never asked
	ScoreStep int      `json:"score_step"` // the step that the result is of
	Stopped   bool     `json:"stopped"`    // before its time, by patience

	Waited time.Duration `json:"-"` // for batches, by the engine
}
