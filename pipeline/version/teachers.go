package version

import (
	"context"
	"errors"
	"fmt"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/train"
)

// The one that is taught begins with the weights of a teacher, so that it takes
// fewer and smaller steps than they did.
const (
	taughtSteps = 0.5
	taughtRate  = 0.5
)

// teacherSeed is how far the seeds of teachers lie apart: versions of successive
// seeds have no teacher in common.
const teacherSeed = 1 << 32

// taught trains the teachers of the imputer, and returns how it learns from them.
// Each ends as the imputer would that learns alone, by the days that choose.
func (r *run) taught(ctx context.Context, to *training) (fitting, error) {
	data, err := r.folder.read(to.network())
	if err != nil || data != nil {
		return nil, err // it was taught before
	}
	alone := r.s.Imputer.Steps
	to.cfg.Steps = max(int(taughtSteps*float64(alone)), 1)
	to.cfg.WarmupSteps = min(to.cfg.WarmupSteps, to.cfg.Steps/10)
	to.cfg.LearningRate *= taughtRate
	to.done, to.steps = r.s.Teachers*alone, r.s.Teachers*alone+to.cfg.Steps
	var teachers []*impute.Model
	for k := range r.s.Teachers {
		report := &train.Report{}
		r.eval.Reports.Teachers = append(r.eval.Reports.Teachers, report)
		one := training{phase: PhaseImputer, name: teacherName(k), cfg: r.s.Imputer, report: report, done: k * alone, steps: to.steps}
		one.cfg.Seed += uint64(k) * teacherSeed
		data, err := r.trainNetwork(ctx, one, func(source learn.Source, hooks train.Hooks) (saver, train.Report, error) {
			hooks.Score, hooks.ScoreEvery, hooks.Patience = r.score, r.s.ScoreEvery, r.s.Patience
			return r.trainer.Train(ctx, r.material, source, one.cfg, hooks)
		})
		if err != nil {
			return nil, fmt.Errorf("teacher %d: %w", k+1, err)
		}
		teacher, err := impute.Load(data, r.runner)
		if err != nil {
			return nil, err
		}
		teachers = append(teachers, teacher)
	}
	return func(source learn.Source, hooks train.Hooks) (saver, train.Report, error) {
		hooks.Score, hooks.ScoreEvery, hooks.Patience = r.score, r.s.ScoreEvery, r.s.Patience
		defer func() {
			for _, t := range teachers {
				t.Close()
			}
		}()
		return r.trainer.Distil(ctx, teachers, r.material, source, to.cfg, hooks)
	}, nil
}

// forgetTeachers removes their files once the imputer has its own.
func (r *run) forgetTeachers() error {
	var errs []error
	for k := range r.s.Teachers {
		errs = append(errs, r.folder.discard(teacherName(k)+".onnx"))
	}
	return errors.Join(errs...)
}

func teacherName(k int) string { return fmt.Sprintf("teacher-%d", k+1) }
