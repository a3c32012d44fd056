package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/ops"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
)

// Fleet has jobs done, on other machines or beside the worker.
type Fleet interface {
	// Send puts a job into the queue. answer is called once with its result, from
	// another goroutine, and must not block.
	Send(ctx context.Context, m jobs.Message, live bool, answer func(jobs.Result)) error
}

// Folder keeps what jobs need, and what they have made until it is stored.
type Folder interface {
	Pack(job fill.Job, p jobs.Packing) (jobs.Message, error)
	Open(m jobs.Message) error
	Message(dataset, granule string, revision int) (m jobs.Message, ok bool, err error)
	Opened(dataset string) ([]jobs.Message, error)
	Close(dataset, granule string, revision int) error
	Forget(job string) error
	Place(ctx context.Context, r jobs.Result, path string) error
}

// Remote are the parts of a worker whose granules are filled on other machines, or
// beside it. It prepares them here, one after the other, as it would to fill them
// itself: the calibration, the constants and the masks of each are the same.
type Remote struct {
	Fleet   Fleet
	Folder  Folder
	Version func(model string) *modelstore.Version // of a model that is loaded
	Most    int                                    // jobs of the dataset that may be under way
	// Drop ends the jobs under way, of a fleet in this process, which fills granules of
	// the backfill lane only; nil: other machines do all, and go on.
	Drop func() error
}

// dispatch prepares a granule and sends its job; plain: to be filled by optimal
// interpolation, because a model could not.
func (w *Worker) dispatch(ctx context.Context, g ledger.Granule, plain bool) error {
	began := w.Now()
	if m, ok, err := w.opened(g); err != nil || ok {
		if err != nil {
			return err
		}
		return w.send(ctx, sentJob{granule: g, message: m, began: began})
	}
	if err := w.overtake(ctx, g); err != nil {
		return err
	}
	if err := w.accept(ctx, g); err != nil {
		return err
	}
	s, err := w.scene(ctx, g, g.Lane == ledger.Live)
	if err != nil {
		return err
	}
	w.Metrics.Took(w.set.Name, ops.Decode, w.Now().Sub(began))
	w.large = s.large()
	m, err := w.pack(ctx, g, s, plain)
	if err != nil {
		return err
	}
	if err := w.Remote.Folder.Open(m); err != nil {
		return err
	}
	if err := w.send(ctx, sentJob{granule: g, message: m, began: began}); err != nil {
		return errors.Join(err, w.Remote.Folder.Close(g.Dataset, g.Name, g.Revision)) // prepared anew: its neighbours may be others by then
	}
	if !s.granule.Empty() {
		return nil
	}
	// The ledger leaves an empty granule out of windows from when its product is stored.
	return w.awaitAll(ctx, func(j sentJob) bool { return j.key() == g.ID })
}

// opened returns the message of a granule that was sent before, by a daemon that has
// ended since; one of another content or program is forgotten.
func (w *Worker) opened(g ledger.Granule) (jobs.Message, bool, error) {
	m, ok, err := w.Remote.Folder.Message(g.Dataset, g.Name, g.Revision)
	if err != nil || !ok {
		return m, false, err
	}
	if m.Current() && m.Target.Absent == g.Absent && (g.Absent || m.Target.SHA256 == g.SHA256) {
		return m, true, nil
	}
	return m, false, w.Remote.Folder.Close(g.Dataset, g.Name, g.Revision)
}

// pack makes the message of a granule.
func (w *Worker) pack(ctx context.Context, g ledger.Granule, s scene, plain bool) (jobs.Message, error) {
	fetched, err := w.Books.FetchedAt(ctx, g)
	if err != nil {
		return jobs.Message{}, err
	}
	job := w.choose(ctx, w.jobOf(g, s, fetched, true))
	if plain {
		job = interpolated(job)
	}
	if job, err = w.equip(ctx, job); err != nil {
		return jobs.Message{}, err
	}
	return w.packJob(ctx, g, job, jobs.Packing{Product: w.fileName(g.Revision, s.granule), Picture: w.cfg.QuickLook})
}

// send sends a job, or takes its result where it has one.
func (w *Worker) send(ctx context.Context, j sentJob) error {
	key := j.key()
	var err error
	if j.id, err = j.message.ID(); err != nil {
		return err
	}
	if w.answers == nil {
		// Room for one answer to each job: none of them waits.
		w.answers, w.sent = make(chan answer, w.Remote.Most+mostAhead), map[int64]sentJob{}
	}
	answers := w.answers
	err = w.Remote.Fleet.Send(ctx, j.message, j.granule.Lane == ledger.Live && j.score == nil, func(r jobs.Result) { answers <- answer{key: key, Result: r} })
	if err != nil {
		return fmt.Errorf("send the job of %s: %w", j.granule.Name, err)
	}
	w.sent[key] = j
	return nil
}

// overtake waits for the jobs under way that would have been made with a granule, had
// it been there: when it is placed their products must be on record, to be reopened. A
// product that is looked at again already is dropped, and looked at later: a granule
// does not wait for it.
func (w *Worker) overtake(ctx context.Context, g ledger.Granule) error {
	if len(w.sent) == 0 {
		return nil
	}
	granule, err := w.granule(ctx, g)
	if err != nil {
		return err
	}
	return w.awaitWithout(ctx, g, granule)
}

// awaitWithout is overtake for a granule that was read.
func (w *Worker) awaitWithout(ctx context.Context, g ledger.Granule, granule ingest.Granule) error {
	first, last := field.Span(granule.Fields)
	past, future := w.set.Fill.Past(), w.set.Fill.Future()
	late := func(j sentJob) bool {
		return j.score == nil && (j.granule.Name == g.Name || !g.Absent && !granule.Empty() && !j.uses(g.SHA256, first, last, past, future))
	}
	maps.DeleteFunc(w.sent, func(_ int64, j sentJob) bool { return j.again != nil && late(j) })
	return w.awaitAll(ctx, late)
}

// awaitAll waits until no job of a kind is under way.
func (w *Worker) awaitAll(ctx context.Context, of func(sentJob) bool) error {
	for {
		waits := false
		for _, j := range w.sent {
			waits = waits || of(j)
		}
		if !waits {
			return nil
		}
		w.restAway()
		select {
		case a := <-w.answers:
			w.Heartbeat.Beat()
			w.take(ctx, a)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitAny waits for a result, a granule that arrives, or until, where it is not nil.
func (w *Worker) awaitAny(ctx context.Context, at *arrivals, until <-chan time.Time) {
	var arrived <-chan struct{}
	if at != nil {
		came := make(chan struct{})
		arrived = came
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case _, open := <-at.granules:
				at.ended = !open
				close(came)
			case <-stop:
			}
		}()
		defer func() { close(stop); <-ended }()
	}
	w.restAway()
	select {
	case a := <-w.answers:
		w.Heartbeat.Beat()
		w.take(ctx, a)
	case <-arrived:
	case <-until:
	case <-ctx.Done():
	}
}

// takeAll takes the results that have come.
func (w *Worker) takeAll(ctx context.Context) {
	for {
		select {
		case a := <-w.answers:
			w.take(ctx, a)
		default:
			return
		}
	}
}

// take stores the product of a result. What it could not do stays on record as
// unfinished, and is tried again in the next round.
func (w *Worker) take(ctx context.Context, a answer) {
	j, ok := w.sent[a.key]
	if !ok || j.id != a.Job {
		return
	}
	delete(w.sent, a.key)
	if j.score != nil {
		if err := w.adoptScore(ctx, j, a.Result); err != nil && ctx.Err() == nil {
			w.refused[a.key] = fmt.Errorf("score of %s: %w", j.granule.Name, err)
		}
		return
	}
	w.Metrics.Took(w.set.Name, ops.Analyse, time.Duration(a.Seconds*float64(time.Second)))
	w.Log.Debug("job done", "granule", j.granule.Name, "worker", a.Worker, "seconds", a.Seconds, "analysis", a.Took.Analysis, "network", a.Took.Network, "writing", a.Took.Writing)
	if j.again != nil {
		if err := w.adoptAgain(ctx, j, a.Result); err != nil && ctx.Err() == nil {
			w.refused[a.key] = fmt.Errorf("reopened product of %s: %w", j.granule.Name, err)
		}
		return
	}
	err := w.adopt(ctx, j, a.Result)
	if err == nil {
		return
	}
	bad := (*ingest.BadGranule)(nil)
	if errors.As(err, &bad) {
		w.round.SetAside++
		if err = w.setAside(ctx, j.granule, bad); err == nil {
			return
		}
	}
	if ctx.Err() == nil {
		err = errors.Join(err, w.Remote.Folder.Close(j.message.Dataset, j.message.Granule, j.message.Revision)) // likewise
		w.refused[a.key] = fmt.Errorf("granule %s: %w", j.granule.Name, err)
	}
}

// adopt makes the product of a granule of a result.
func (w *Worker) adopt(ctx context.Context, j sentJob, r jobs.Result) error {
	g, m := j.granule, j.message
	if r.Failed != "" {
		if err := errors.Join(w.Remote.Folder.Forget(r.Job), w.Remote.Folder.Close(g.Dataset, g.Name, g.Revision)); err != nil {
			return err
		}
		switch {
		case r.Gone: // prepared anew in the next round
			return fmt.Errorf("worker %s cannot fill it: %s", r.Worker, r.Failed)
		case m.Model != nil && !w.away() && w.Models.Lost():
			return w.dispatch(ctx, g, false) // by the device that stands in
		case m.Model != nil:
			w.Log.Warn("the model cannot fill the granule", "granule", g.Name, "model", m.Model.Version, "method", "oi", "worker", r.Worker, "tries", r.Dead, "err", r.Failed)
			return w.dispatch(ctx, g, true)
		case r.Dead > 0:
			return &ingest.BadGranule{
				File: g.Name, Problem: fmt.Sprintf("no worker could fill it in %d tries, the last said: %s", r.Dead, r.Failed),
				Remedy: "look at the workers, mend what is wrong, and try it again with 'lacuna quarantine retry --all'",
			}
		}
		return fmt.Errorf("worker %s cannot fill it: %s", r.Worker, r.Failed)
	}
	err := w.store(ctx, g, w.draftOf(ctx, j, r))
	var c *publish.Conflict
	switch {
	case errors.As(err, &c), errors.Is(err, ledger.ErrRenumbered):
		if err := w.Remote.Folder.Close(g.Dataset, g.Name, g.Revision); err != nil {
			return err
		}
		if g, err = w.renumber(ctx, g, c); err != nil {
			return err
		}
		return w.dispatch(ctx, g, false)
	case errors.Is(err, fs.ErrNotExist):
		// The files of an old result were swept: it is done again.
		return errors.Join(err, w.Remote.Folder.Forget(r.Job))
	case err != nil:
		return err
	}
	w.round.Products++
	w.gaveWay = 0
	return w.Remote.Folder.Close(g.Dataset, g.Name, g.Revision)
}

// draftOf returns the product of a result, to be stored.
func (w *Worker) draftOf(ctx context.Context, j sentJob, r jobs.Result) draft {
	m := j.message
	return draft{
		granule: m.Target.Name, file: publish.WithMode(m.Product, r.Told.Mode), first: m.Time, filled: m.Filled, began: j.began, sum: r.SHA256,
		write: func(path string) (jobs.Made, error) { return r.Made, w.Remote.Folder.Place(ctx, r, path) },
	}
}

// resume sends the jobs again that an earlier daemon has left under way: before any
// granule that would change what they are made with.
func (w *Worker) resume(ctx context.Context) error {
	if w.Remote == nil || w.resumed {
		return nil
	}
	open, err := w.Remote.Folder.Opened(w.set.Name)
	if err != nil || len(open) == 0 {
		w.resumed = err == nil
		return err
	}
	rows, err := w.Books.FirstPending(ctx, w.set.Name, -1)
	if err != nil {
		return err
	}
	byKey := map[string]ledger.Granule{}
	for _, g := range rows {
		byKey[fmt.Sprintf("%s r%d", g.Name, g.Revision)] = g
	}
	for _, m := range open {
		g, ok := byKey[fmt.Sprintf("%s r%d", m.Granule, m.Revision)]
		if !ok {
			if err := w.Remote.Folder.Close(m.Dataset, m.Granule, m.Revision); err != nil {
				return err
			}
			continue
		}
		if _, current, err := w.opened(g); err != nil || !current {
			if err != nil {
				return err
			}
			continue
		}
		if err := w.dispatch(ctx, g, false); err != nil {
			return err
		}
	}
	w.resumed = true
	return nil
}

// jobOf returns the job of a granule, without its method; first says that it has no
// product yet, which may be waited for.
func (w *Worker) jobOf(g ledger.Granule, s scene, fetched time.Time, first bool) fill.Job {
	return fill.Job{
		Dataset: w.set.Name, Granule: s.granule, History: s.history, Sea: s.sea, Seen: s.seen, SeaMask: s.seaMask, Screened: s.screened,
		Fill: w.set.paced(g.Lane, len(s.granule.Fields), first || w.pressed), Backlog: g.Lane == ledger.Backfill, Revision: g.Revision, Created: g.Recorded, Published: g.ModTime, Fetched: fetched, Credits: w.cfg.Credits,
		Layout: w.set.Layout,
	}
}
