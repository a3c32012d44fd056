package work

import (
	"context"

	"lacuna/daemon/fill"
	"lacuna/pipeline/skill"
)

// analyse fills a granule by the method that Models choose for its settings.
// Where a model fails, such as one of another grid, it falls back to optimal
// interpolation. It returns the job as it was done.
func (w *Worker) analyse(ctx context.Context, asked fill.Job) (fill.Outcome, fill.Job, error) {
	outcome, job, err := w.attempt(ctx, w.choose(ctx, asked))
	if err != nil && job.Model != nil && ctx.Err() == nil && w.Models.Lost() {
		outcome, job, err = w.attempt(ctx, w.choose(ctx, asked))
	}
	if err == nil || job.Model == nil || ctx.Err() != nil {
		return outcome, job, err
	}
	w.Log.Warn("the model cannot fill the granule", "granule", job.Granule.Name, "model", job.Model.Name(), "method", "oi", "err", err)
	return w.attempt(ctx, interpolated(job))
}

// choose returns the job with the method that Models choose.
func (w *Worker) choose(ctx context.Context, job fill.Job) fill.Job {
	choice := w.Models.Choose(fill.Case{
		Dataset: w.set.Name, Granule: job.Granule, Fill: job.Fill,
		Scaling:  func() (fill.LocalScaling, error) { return w.localScaling(ctx, job) },
		Evidence: func(c fill.Choice) skill.Trust { return w.trust(job, c) },
	})
	job.Fill, job.Model, job.Scaling, job.Trust = choice.Fill, choice.Model, choice.Scaling, choice.Trust
	return job
}

// attempt fills a granule by the method of the job, with the constants and the
// calibration of the dataset.
func (w *Worker) attempt(ctx context.Context, job fill.Job) (outcome fill.Outcome, done fill.Job, err error) {
	if job, err = w.equip(ctx, job); err != nil {
		return fill.Outcome{}, job, err
	}
	outcome, err = fill.Analyse(ctx, job, func(int, int) { w.Heartbeat.Beat() })
	return outcome, job, err
}

// equip returns the job with the constants and the calibration of the dataset.
func (w *Worker) equip(ctx context.Context, job fill.Job) (fill.Job, error) {
	if job.Fill.Method == "oi" || job.Trust != nil || job.Scaling != nil {
		var err error
		if job.Constants, err = w.constants(ctx, job); err != nil {
			return job, err
		}
	}
	if job.Constants != nil || job.Model != nil {
		if err := w.explain(ctx, &job); err != nil {
			return job, err
		}
	}
	job.Widening, job.Centre = w.widening(job), w.centre(job)
	if job.Trust != nil {
		job.Interpolated = w.widening(interpolated(job))
	}
	return job, nil
}

// interpolated returns the job as optimal interpolation does it.
func interpolated(job fill.Job) fill.Job {
	job.Fill.Method, job.Model, job.Scaling, job.Trust = "oi", nil, nil, nil
	return job
}
