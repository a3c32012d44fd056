package work

import (
	"context"
	"errors"
	"fmt"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/ledger"
)

// dispatchScore has a granule scored elsewhere; plain: filled by optimal
// interpolation, because a model could not. One score of a dataset is under way at a
// time: what it says has a part in the next. unscored says why it cannot be scored; err
// is a failure of our own, and it is tried again.
func (w *Worker) dispatchScore(ctx context.Context, due ledger.DueSkill, plain bool) (unscored, err error) {
	g := due.Granule
	s, err := w.rawScene(ctx, g, false)
	if err == nil {
		err = w.scoredScene(ctx, &s)
	}
	if err != nil {
		return err, nil
	}
	job := w.scoredJob(g, s)
	if _, _, err := jobs.Overlaid(job, g.SHA256); err != nil { // no need to ask a worker
		return err, nil
	}
	job = w.choose(ctx, job)
	if plain {
		job = interpolated(job)
	}
	if job, err = w.equip(ctx, job); err != nil {
		return err, nil
	}
	m, err := w.packJob(ctx, g, job, jobs.Packing{Score: g.SHA256})
	if err != nil {
		return nil, err
	}
	job.History, job.Sea, job.Granule.Fields = nil, nil, nil
	return nil, w.send(ctx, sentJob{granule: g, message: m, began: w.Now(), score: &due, job: job})
}

// adoptScore records the score of a result.
func (w *Worker) adoptScore(ctx context.Context, j sentJob, r jobs.Result) error {
	if r.Failed == "" && r.Score == nil {
		r.Failed = "the worker " + r.Worker + " gave no score"
	}
	if r.Failed == "" {
		return w.endScore(ctx, *j.score, w.keepScore(j.granule, j.job, *r.Score), nil)
	}
	if err := w.Remote.Folder.Forget(r.Job); err != nil {
		return err
	}
	if r.Gone { // prepared anew in the next round
		return fmt.Errorf("worker %s: %s", r.Worker, r.Failed)
	}
	unscored := errors.New(r.Failed)
	if j.message.Model != nil {
		w.Log.Warn("the model cannot fill the granule", "granule", j.granule.Name, "model", j.message.Model.Version, "method", "oi", "worker", r.Worker, "err", unscored)
		var err error
		if unscored, err = w.dispatchScore(ctx, *j.score, true); unscored == nil {
			return err
		}
	}
	return w.endScore(ctx, *j.score, ledger.Skill{}, unscored)
}

// packJob makes the message of a job.
func (w *Worker) packJob(ctx context.Context, g ledger.Granule, job fill.Job, p jobs.Packing) (m jobs.Message, err error) {
	p.Granule, p.Options, p.Filled = g.Name, w.set.Options, w.Now()
	if g.State == ledger.Filled && p.Product != "" && p.Before == "" { // before a crash: the file that may be there already says so
		p.Filled = g.Changed
	}
	p.Path = func(sha256 string) string { return w.spooled[sha256] }
	if g.Absent {
		if p.Around, err = w.around(ctx, g); err != nil {
			return m, err
		}
	}
	if job.Model != nil {
		p.Version = w.Remote.Version(job.Model.Name())
	}
	return w.Remote.Folder.Pack(job, p)
}
