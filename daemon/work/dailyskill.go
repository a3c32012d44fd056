package work

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
)

// score computes a score that is due: of a granule filled once more under the gaps
// of another day, or of an earlier product on the cells that a replacement
// reveals. A score that fails is recorded with the reason, and not tried again.
func (w *Worker) score(ctx context.Context, due ledger.DueSkill) error {
	if w.away() && due.Kind == ledger.Overlay {
		unscored, err := w.dispatchScore(ctx, due, false)
		if unscored != nil {
			return w.endScore(ctx, due, ledger.Skill{}, unscored)
		}
		return err
	}
	s, err := w.rawScene(ctx, due.Granule, false)
	var got ledger.Skill
	if err == nil {
		switch due.Kind {
		case ledger.Revealed:
			if err = w.screened(ctx, &s); err == nil {
				got, err = w.scoreRevealed(ctx, due.Scored, s)
			}
		default:
			got, err = w.scoreOverlay(ctx, due.Granule, s)
		}
	}
	return w.endScore(ctx, due, got, err)
}

// endScore records a score, or the reason why there is none.
func (w *Worker) endScore(ctx context.Context, due ledger.DueSkill, got ledger.Skill, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.Log.Debug("granule not scored", "granule", due.Granule.Name, "kind", due.Kind, "why", err)
		return w.Books.SkipSkill(ctx, due.ID, err.Error(), w.Now())
	}
	w.Log.Debug("granule scored", "granule", due.Granule.Name, "kind", due.Kind, "mse", got.MSE, "pixels", got.Pixels)
	return w.Books.EndSkill(ctx, due.ID, got, w.Now())
}

// scoreOverlay hides a part of the granule's last field under the gaps of another
// day and fills it from earlier days only, as the first product was.
func (w *Worker) scoreOverlay(ctx context.Context, g ledger.Granule, s scene) (ledger.Skill, error) {
	if err := w.scoredScene(ctx, &s); err != nil {
		return ledger.Skill{}, err
	}
	job := w.scoredJob(g, s)
	if _, _, err := jobs.Overlaid(job, g.SHA256); err != nil {
		return ledger.Skill{}, err
	}
	got, job, err := w.tryScore(ctx, g, w.choose(ctx, job))
	if err != nil && job.Model != nil && ctx.Err() == nil {
		w.Log.Warn("the model cannot fill the granule", "granule", g.Name, "model", job.Model.Name(), "method", "oi", "err", err)
		got, job, err = w.tryScore(ctx, g, interpolated(job))
	}
	if err != nil {
		return ledger.Skill{}, err
	}
	return w.keepScore(g, job, got), nil
}

// scoredScene leaves of a raw scene what a scored granule is filled from: earlier
// days only, by which its observations are tested too, as of the first product.
func (w *Worker) scoredScene(ctx context.Context, s *scene) error {
	s.history = upTo(s.history, s.granule.Fields[len(s.granule.Fields)-1].Time)
	return w.screened(ctx, s)
}

// scoredJob returns the job of a granule that is scored, without its method and
// without members, which are not scored.
func (w *Worker) scoredJob(g ledger.Granule, s scene) fill.Job {
	settings := w.set.paced(g.Lane, len(s.granule.Fields), w.pressed) // as what is published
	settings.Members = 0
	return fill.Job{
		Dataset: w.set.Name, Granule: s.granule, History: s.history, Sea: s.sea, Fill: settings, Screened: s.screened,
		Revision: g.Revision, Created: g.Recorded, Credits: w.cfg.Credits, Scored: true,
	}
}

func (w *Worker) tryScore(ctx context.Context, g ledger.Granule, job fill.Job) (jobs.Score, fill.Job, error) {
	job, err := w.equip(ctx, job)
	if err != nil {
		return jobs.Score{}, job, err
	}
	got, err := jobs.ScoreDay(ctx, job, g.SHA256, func(int, int) { w.Heartbeat.Beat() })
	return got, job, err
}

// keepScore keeps what a scored day says for later products, and returns it for the
// ledger.
func (w *Worker) keepScore(g ledger.Granule, job fill.Job, got jobs.Score) ledger.Skill {
	var days []scored
	for _, e := range got.Evidence {
		d := scored{job: job, day: e.Day, departure: e.Departure, means: e.Means}
		if e.Plain {
			d.job = interpolated(job)
		}
		days = append(days, d)
	}
	if err := w.keepScored(days...); err != nil {
		w.Log.Warn("scored day not kept, products are calibrated without it", "granule", g.Name, "err", err)
	}
	return skillOf(got.Scores)
}

func skillOf(s jobs.Scores) ledger.Skill {
	return ledger.Skill{Method: s.Method, MSE: s.MSE, Bias: s.Bias, Covered90: s.Covered90, Pixels: s.Pixels}
}

// upTo returns the granules without a field later than t.
func upTo(gs []ingest.Granule, t time.Time) []ingest.Granule {
	var past []ingest.Granule
	for _, g := range gs {
		if _, last := field.Span(g.Fields); !last.After(t) {
			past = append(past, g)
		}
	}
	return past
}

// scoreRevealed scores an earlier product on the cells that it had filled and that
// the replacement of its granule shows.
func (w *Worker) scoreRevealed(ctx context.Context, before ledger.Publication, s scene) (ledger.Skill, error) {
	old, _, err := jobs.ReadProduct(ctx, w.Reader, before.File, s.granule)
	if err != nil {
		return ledger.Skill{}, fmt.Errorf("the earlier product cannot be read: %w", err)
	}
	var told publish.Product
	if err := json.Unmarshal([]byte(before.Body), &told); err != nil {
		return ledger.Skill{}, fmt.Errorf("read the description of the earlier product: %w", err)
	}
	scale, err := jobs.ScaleOf(s.granule.Transform, append([]ingest.Granule{s.granule}, s.history...))
	if err != nil {
		return ledger.Skill{}, err
	}
	trials := make([]jobs.Trial, len(old))
	for i, f := range s.granule.Fields {
		t := jobs.Trial{
			Truth: f, Visible: make(field.Mask, len(f.Values)), Scored: make(field.Mask, len(f.Values)),
			Value: old[i].Value, Sigma: old[i].Sigma,
		}
		for c := range f.Values {
			t.Scored[c] = f.Observed(c) && old[i].Filled[c]
			t.Visible[c] = f.Observed(c) && !t.Scored[c]
		}
		trials[i] = t
	}
	got, err := scale.Score(told.Model, trials...)
	return skillOf(got), err
}
