package work

import (
	"context"
	"errors"
	"fmt"

	"lacuna/daemon/jobs"
	"lacuna/ledger"
)

// dispatchAgain has a reopened product analysed and compared elsewhere; plain: by
// optimal interpolation, because a model could not. The job is that of the next
// revision, so that its files can be stored if they are worth one. One of a dataset is
// under way at a time.
func (w *Worker) dispatchAgain(ctx context.Context, a again, g ledger.Granule, s scene, plain bool) error {
	fetched, err := w.Books.FetchedAt(ctx, g)
	if err != nil {
		return err
	}
	job := w.jobOf(g, s, fetched, false)
	job.Revision, job.Created = a.before.Revision+1, w.Now().UTC()
	job = w.choose(ctx, job)
	if plain {
		job = interpolated(job)
	}
	if job, err = w.equip(ctx, job); err != nil {
		return err
	}
	m, err := w.packJob(ctx, g, job, jobs.Packing{Product: w.fileName(job.Revision, s.granule), Picture: w.cfg.QuickLook, Before: a.before.File})
	if err != nil {
		return err
	}
	return w.send(ctx, sentJob{granule: g, message: m, began: w.Now(), again: &a})
}

// lookingAgain reports whether a reopened product is under way.
func (w *Worker) lookingAgain() bool {
	for _, j := range w.sent {
		if j.again != nil {
			return true
		}
	}
	return false
}

// adoptAgain ends the reopening of a result.
func (w *Worker) adoptAgain(ctx context.Context, j sentJob, r jobs.Result) error {
	err := w.settleAgain(ctx, j, r)
	if err != nil && ctx.Err() == nil { // it stays open, behind the others
		return errors.Join(err, w.Books.PostponeReopening(ctx, j.again.ID, w.Now(), w.set.Retry))
	}
	return err
}

func (w *Worker) settleAgain(ctx context.Context, j sentJob, r jobs.Result) error {
	m := j.message
	if r.Failed == "" && r.Change == nil {
		r.Failed = "the worker " + r.Worker + " has compared nothing"
	}
	if r.Failed != "" {
		if err := w.Remote.Folder.Forget(r.Job); err != nil {
			return err
		}
		if m.Model == nil || r.Gone {
			return fmt.Errorf("worker %s cannot fill it: %s", r.Worker, r.Failed)
		}
		w.Log.Warn("the model cannot fill the granule", "granule", j.granule.Name, "model", m.Model.Version, "method", "oi", "worker", r.Worker, "err", r.Failed)
		s, err := w.scene(ctx, j.granule, false)
		if err != nil {
			return err
		}
		return w.dispatchAgain(ctx, *j.again, j.granule, s, true)
	}
	next, revise, err := w.judge(ctx, *j.again, *r.Change, r.Told.Sampling, m.Created)
	switch {
	case err != nil || !revise:
		return err
	case next.Revision != m.Revision || !next.Recorded.Equal(m.Created):
		return nil // the number was taken, or somebody else has asked for a revision: it is filled in its turn
	}
	err = w.store(context.WithoutCancel(ctx), next, w.draftOf(ctx, j, r))
	if err == nil {
		w.round.Products++
	}
	return err
}
