package train

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/pkg/core/graph"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
)

// line is a task of two weights: y = slope x + offset, from noisy points.
var line = nn.Layout{Size: 2, Params: []nn.Param{{Name: "slope", Dims: []int{1}}, {Name: "offset", Dims: []int{1}, Offset: 1}}}

// lineSettings tell the checkpoints of lines apart.
type lineSettings struct {
	Slope float64 `json:"slope"`
}

func lineTask(slope float64) Task {
	const items = 4
	cfg := DefaultConfig()
	cfg.Steps, cfg.WarmupSteps, cfg.LearningRate, cfg.EMADecay = 20, 2, 0.1, 0.9
	return Task{
		Kind: "line", Settings: lineSettings{slope}, Layout: &line, Optimizer: cfg, Seed: 1, Workers: 2,
		Loss: func(w nn.Weights, batch []*Node) *Node {
			at := func(p nn.Param, like *Node) *Node { return BroadcastToShape(w.Weight(p), like.Shape()) }
			said := Add(Mul(at(line.Params[0], batch[0]), batch[0]), at(line.Params[1], batch[0]))
			return ReduceAllMean(Square(Sub(said, batch[1])))
		},
		Dims: [][]int{{items}, {items}}, Scratch: 1,
		Fill: func(_ context.Context, b *Batch, item int, n uint64) error {
			noise.New(7, "line").Normals(b.Buffers[0][item:item+1], n)
			noise.New(7, "error").Normals(b.Scratch, n)
			b.Buffers[1][item] = float32(slope)*b.Buffers[0][item] - 1 + 0.1*b.Scratch[0]
			return nil
		},
	}
}

func stepOf(t *testing.T, task Task) *Step {
	t.Helper()
	s, err := task.NewStep(enginetest.OpenThreads(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func weightsOf(t *testing.T, s *Step, task Task, hooks Hooks) ([]float32, Report) {
	t.Helper()
	w, report, err := Run(t.Context(), s, task, hooks)
	if err != nil {
		t.Fatal(err)
	}
	return w, report
}

func TestALineIsFound(t *testing.T) {
	task := lineTask(2)
	task.Optimizer.Steps = 200
	var heard []Progress
	w, report := weightsOf(t, stepOf(t, task), task, Hooks{Progress: func(p Progress) { heard = append(heard, p) }})
	if math.Abs(float64(w[0])-2) > 0.1 || math.Abs(float64(w[1])+1) > 0.1 {
		t.Errorf("the line is %v, want about [2 -1]", w)
	}
	if report.Steps != 200 || report.Resumed != 0 || report.Score != nil || report.Stopped || report.Waited <= 0 {
		t.Errorf("report is %+v", report)
	}
	sum := 0.0
	for i, p := range heard {
		if p.Step != i+1 || p.Steps != 200 || p.Score != nil {
			t.Fatalf("progress %d is %+v", i, p)
		}
		if p.Step > 180 {
			sum += p.Loss
		}
	}
	if len(heard) != 200 || report.Loss != sum/20 {
		t.Errorf("heard of %d steps; the loss of the last tenth is %v, reported %v", len(heard), sum/20, report.Loss)
	}
}

func TestTheNumberOfWorkersDoesNotMatter(t *testing.T) {
	task := lineTask(2)
	step := stepOf(t, task) // serves one run after the other
	task.Workers = 1
	want, _ := weightsOf(t, step, task, Hooks{})
	task.Workers = 7
	if got, _ := weightsOf(t, step, task, Hooks{}); !slices.Equal(got, want) {
		t.Errorf("seven workers give %v, one %v", got, want)
	}
}

func TestRunBeginsWithTheWeightsItIsGiven(t *testing.T) {
	task := lineTask(2)
	task.Optimizer.Steps, task.Optimizer.LearningRate = 1, 1e-6
	got, _ := weightsOf(t, stepOf(t, task), task, Hooks{From: []float32{5, 6}})
	if math.Abs(float64(got[0])-5) > 1e-4 || math.Abs(float64(got[1])-6) > 1e-4 || got[0] == 5 {
		t.Errorf("a small step from [5 6] gives %v", got)
	}
	if _, _, err := Run(t.Context(), stepOf(t, task), task, Hooks{From: make([]float32, 3)}); err == nil {
		t.Error("began with three weights")
	}
}

// scores returns a Score that says these, one after the other, and the weights
// it was asked for.
func scores(say ...float64) (func(context.Context, []float32) (float64, error), *[][]float32) {
	asked := &[][]float32{}
	return func(_ context.Context, w []float32) (float64, error) {
		*asked = append(*asked, w)
		return say[len(*asked)-1], nil
	}, asked
}

func TestTheBestScoreDecides(t *testing.T) {
	step := stepOf(t, lineTask(2))
	for _, tt := range []struct {
		name           string
		say            []float64
		edit           func(*Hooks)
		result, report int     // the score whose weights are returned and that is reported, from 0
		stopped        bool    // after the last one that is said
		score          float64 // in the report, where it differs from the score asked for
	}{
		{name: "the last weights without a wish", say: []float64{1, 3, 2, 4}, edit: func(*Hooks) {}, result: 3, report: 3},
		{name: "the best without patience", say: []float64{2, 1, 3, 4}, edit: func(h *Hooks) { h.KeepBest = true }, result: 1, report: 1},
		{name: "the first of equals", say: []float64{1, 1, 1, 1}, edit: func(h *Hooks) { h.KeepBest = true }, result: 0, report: 0},
		{name: "patience ends the run", say: []float64{2, 3, 4}, edit: func(h *Hooks) { h.Patience = 2 }, result: 0, report: 0, stopped: true},
		{name: "patience that ends with the run", say: []float64{2, 1, 4, 5}, edit: func(h *Hooks) { h.Patience = 2 }, result: 1, report: 1},
		{name: "not a number is the worst", say: []float64{math.NaN(), 5, math.Inf(1), 6}, edit: func(h *Hooks) { h.KeepBest = true }, result: 1, report: 1},
		{name: "nothing but NaN", say: []float64{math.NaN(), math.NaN()}, edit: func(h *Hooks) { h.Patience = 1 }, stopped: true, score: math.MaxFloat64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			task := lineTask(2)
			score, asked := scores(tt.say...)
			hooks := Hooks{Score: score, ScoreEvery: 5, Checkpoint: filepath.Join(t.TempDir(), "run"), CheckpointEvery: 1}
			tt.edit(&hooks)
			got, report := weightsOf(t, step, task, hooks)
			if len(*asked) != len(tt.say) || report.Steps != 5*len(tt.say) || report.Stopped != tt.stopped {
				t.Fatalf("asked %d times in %+v", len(*asked), report)
			}
			if !slices.Equal(got, (*asked)[tt.result]) {
				t.Errorf("the result is %v, asked for were %v", got, *asked)
			}
			want := tt.say[tt.report]
			if tt.score != 0 {
				want = tt.score
			}
			if report.ScoreStep != 5*(tt.report+1) || *report.Score != want {
				t.Errorf("reported is %v of step %d, want %v", *report.Score, report.ScoreStep, want)
			}
		})
	}
}

// A run that was over and whose result was lost must come to it again, without
// another step: one more score could be better, and the result another one.
func TestARunThatWasOverIsOver(t *testing.T) {
	step := stepOf(t, lineTask(2))
	for _, patience := range []int{0, 2} {
		score, _ := scores(2, 3, 4, 5)
		hooks := Hooks{Score: score, ScoreEvery: 5, KeepBest: true, Patience: patience, Checkpoint: filepath.Join(t.TempDir(), "run")}
		want, first := weightsOf(t, step, lineTask(2), hooks)
		hooks.Score, hooks.Progress = nil, func(Progress) { t.Error("it made another step") }
		got, second := weightsOf(t, step, lineTask(2), hooks)
		if !slices.Equal(got, want) || second.Resumed != first.Steps || second.Stopped != first.Stopped || *second.Score != 2 || second.ScoreStep != 5 {
			t.Errorf("patience %d: %v and %+v, want %v and %+v", patience, got, second, want, first)
		}
	}
}

func TestInterruptedAtEveryStepItEndsWithTheSameWeights(t *testing.T) {
	task := lineTask(2)
	step := stepOf(t, task)
	// The score is a function of the weights, and the best of it is not the last.
	hooks := Hooks{ScoreEvery: 3, KeepBest: true, Score: func(_ context.Context, w []float32) (float64, error) {
		return math.Abs(float64(w[0]) - 0.5), nil
	}}
	want, first := weightsOf(t, step, task, hooks)
	if first.ScoreStep == first.Steps {
		t.Fatal("the last weights are the best: this test shows nothing")
	}
	hooks.Checkpoint = filepath.Join(t.TempDir(), "run")
	for done := 0; done < task.Optimizer.Steps; {
		ctx, cancel := context.WithCancel(t.Context())
		hooks.Progress = func(p Progress) { cancel() }
		_, report, err := Run(ctx, step, task, hooks)
		cancel()
		if err == nil { // it was cancelled after its last step
			done = report.Steps
			continue
		}
		if !errors.Is(err, context.Canceled) || report.Steps <= done {
			t.Fatalf("cancelled after step %d it says %v at step %d", done, err, report.Steps)
		}
		done = report.Steps
		if kept, err := CheckpointStep(hooks.Checkpoint); err != nil || kept != done {
			t.Fatalf("the checkpoint is of step %d, want %d; %v", kept, done, err)
		}
	}
	hooks.Progress = nil
	got, report := weightsOf(t, step, task, hooks)
	if !slices.Equal(got, want) || report.ScoreStep != first.ScoreStep || *report.Score != *first.Score {
		t.Errorf("%v and %+v, want %v and %+v", got, report, want, first)
	}
}

// Without asking again, the weights of that step could not be the best.
func TestAScoreThatWasInterruptedIsAskedAgain(t *testing.T) {
	task := lineTask(2)
	step := stepOf(t, task)
	score, asked := scores(3, 2, 1, 4)
	hooks := Hooks{Score: score, ScoreEvery: 5, KeepBest: true}
	want, first := weightsOf(t, step, task, hooks)
	if len(*asked) != 4 {
		t.Fatalf("asked %d times", len(*asked))
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hooks.Checkpoint = filepath.Join(t.TempDir(), "run")
	score, asked = scores(3, 2, 0, 1, 4)
	hooks.Score = func(_ context.Context, w []float32) (float64, error) {
		if say, err := score(ctx, w); len(*asked) != 3 {
			return say, err
		}
		cancel()
		return 0, ctx.Err()
	}
	if _, report, err := Run(ctx, step, task, hooks); !errors.Is(err, context.Canceled) || report.Steps != 15 {
		t.Fatalf("cancelled while it was scored it says %v after %d steps", err, report.Steps)
	}
	got, report := weightsOf(t, step, task, hooks)
	if report.Resumed != 15 || report.ScoreStep != first.ScoreStep || *report.Score != *first.Score || !slices.Equal(got, want) {
		t.Errorf("%v and %+v, want %v and %+v", got, report, want, first)
	}
}

func TestALossThatIsNotFiniteLeavesTheLastGoodState(t *testing.T) {
	task := lineTask(2)
	step := stepOf(t, task)
	want, _ := weightsOf(t, step, task, Hooks{})
	good := task.Fill
	task.Fill = func(ctx context.Context, b *Batch, item int, n uint64) error {
		err := good(ctx, b, item, n)
		if n >= 5*4 {
			b.Buffers[1][item] = float32(math.NaN())
		}
		return err
	}
	hooks := Hooks{Checkpoint: filepath.Join(t.TempDir(), "run")}
	_, report, err := Run(t.Context(), step, task, hooks)
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "learning rate") || report.Steps != 5 {
		t.Fatalf("NaN in step 6 gives %v after %d steps", err, report.Steps)
	}
	task.Fill = good
	got, report := weightsOf(t, step, task, hooks)
	if report.Resumed != 5 || !slices.Equal(got, want) {
		t.Errorf("going on after %d steps gives %v, want 5 and %v", report.Resumed, got, want)
	}
}

func TestErrorsOfFillersAndScoresEndTheRun(t *testing.T) {
	step := stepOf(t, lineTask(2))
	bad := errors.New("no more days")
	task := lineTask(2)
	good := task.Fill
	task.Fill = func(ctx context.Context, b *Batch, item int, n uint64) error {
		if n == 3*4+2 {
			return bad
		}
		return good(ctx, b, item, n)
	}
	path := filepath.Join(t.TempDir(), "run")
	if _, report, err := Run(t.Context(), step, task, Hooks{Checkpoint: path}); !errors.Is(err, bad) || report.Steps != 3 {
		t.Errorf("a bad example of batch 3 gives %v after %d steps", err, report.Steps)
	}
	if at, err := CheckpointStep(path); at != 3 || err != nil {
		t.Errorf("the checkpoint is of step %d, %v, want 3", at, err)
	}
	score := func(context.Context, []float32) (float64, error) { return 0, bad }
	if _, report, err := Run(t.Context(), step, lineTask(2), Hooks{Score: score, ScoreEvery: 4}); !errors.Is(err, bad) || report.Steps != 4 {
		t.Errorf("a bad score after step 4 gives %v after %d steps", err, report.Steps)
	}
}

func TestATaskThatCannotBeTrainedIsRefused(t *testing.T) {
	for want, edit := range map[string]func(*Task){
		"kind":    func(t *Task) { t.Kind = "" },
		"steps":   func(t *Task) { t.Optimizer.Steps, t.Optimizer.Schedule = 0, Constant },
		"workers": func(t *Task) { t.Workers = 0 },
	} {
		task := lineTask(2)
		edit(&task)
		if _, _, err := Run(t.Context(), stepOf(t, task), task, Hooks{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", want, err)
		}
	}
}

// Cards carry the report.
func TestTheReportIsWrittenWithoutWhatNobodyReads(t *testing.T) {
	score := 0.5
	got, err := json.Marshal(Report{Steps: 9, Resumed: 3, Loss: 0.25, Score: &score, ScoreStep: 6, Stopped: true, Waited: time.Second})
	if want := `{"steps":9,"resumed":3,"loss":0.25,"score":0.5,"score_step":6,"stopped":true}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
