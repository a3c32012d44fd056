package trainjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/daemon/retrain"
	"lacuna/daemon/version"
	"lacuna/daemon/workers"
	"lacuna/modelstore"
)

// Runner does trainings, one at a time, each by a process of its own.
type Runner struct {
	Name    string // of the worker
	Folder  jobs.Folder
	Cache   string   // folder for the time of a training
	Program []string // argv of lacuna, before "train"
	Engine  string
	Process *retrain.Process // so that who fills may hold it
	Session time.Duration    // silence after which another worker counts as gone
	Now     func() time.Time
	Stderr  io.Writer // of the process
	Log     *slog.Logger

	others map[string]observed // leases of others, by training
}

// observed is a lease of another worker, and since when it has not changed.
type observed struct {
	lease string
	since time.Time
}

// Run makes the version of a training and puts it into the folder. The error is
// jobs.ErrLeased while another worker is at it, jobs.ErrHalted where the coordinator
// wants it to rest, jobs.ErrProgram where another worker must do it, and
// *jobs.Unfillable where its days cannot be trained on. When ctx ends, the last
// checkpoint is in the folder.
func (r *Runner) Run(ctx context.Context, m jobs.Message, progress workers.Progress) (result jobs.Result, err error) {
	if !m.Current() {
		return result, fmt.Errorf("%w: it is of %s, and this worker is %s: run the same on all machines", jobs.ErrProgram, m.Program, version.String())
	}
	if err := r.Ready(m); err != nil {
		return result, err
	}
	key, err := m.TrainingKey()
	if err != nil {
		return result, err
	}
	l := lease{folder: r.Folder, key: key, mine: r.Name}
	if err := r.take(&l); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	dir, err := os.MkdirTemp(r.Cache, "training-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := bench{dir: dir, folder: r.Folder, key: key}
	store := modelstore.New(filepath.Join(dir, "store"), r.Now)
	if err := b.unpack(ctx, m, store); err != nil {
		return result, err
	}
	args := append([]string{
		"train", "--json-lines", "--store", store.Dir(), "--dataset", m.Dataset, "--engine", r.Engine,
		"--policy", retrain.PolicyAsk, "--checkpoints", b.checkpoints(),
	}, b.place(m.Training)...)
	engine := ""
	last, err := r.train(ctx, b, &l, args, func(e retrain.Event) {
		switch e.Event {
		case retrain.EventStart:
			engine = e.Engine
			if e.Resumed {
				r.Log.Info("the training goes on from a checkpoint", "dataset", m.Dataset)
			}
		case retrain.EventProgress:
			progress(e.Phase, e.Step, e.Steps)
		}
	})
	if last.Event != retrain.EventDone {
		return result, failure(last, err)
	}
	result.Trained = &jobs.Trained{
		Version: last.Version, Parent: last.Parent, Champion: last.Champion, Won: last.Won, Reasons: last.Reasons,
		Unjudged: last.State == retrain.StateUnjudged, Engine: engine,
	}
	result.Job, err = m.ID()
	return result, errors.Join(err, b.pack(ctx, m.Dataset, store, result.Trained))
}

// Ready says whether a training may be begun; nil: it may. The errors are jobs.ErrLeased
// and jobs.ErrHalted as of Run. Another worker that has the lease keeps it while it
// changes it, and for a session after: nobody compares clocks.
func (r *Runner) Ready(m jobs.Message) error {
	key, err := m.TrainingKey()
	if err != nil {
		return err
	}
	halted, err := r.Folder.Halted(key)
	if err != nil {
		return err
	}
	if halted {
		return jobs.ErrHalted
	}
	held, err := r.Folder.Lease(key)
	if err != nil || held == "" || strings.HasPrefix(held, r.Name+" ") {
		return err
	}
	seen, known := r.others[key]
	if !known || seen.lease != held {
		if r.others == nil {
			r.others = map[string]observed{}
		}
		seen = observed{lease: held, since: time.Now()}
		r.others[key] = seen
	}
	if time.Since(seen.since) < r.Session {
		return jobs.ErrLeased
	}
	return nil
}

// failure returns why a training has made no version.
func failure(last retrain.Event, err error) error {
	if last.Event != retrain.EventFailed || errors.Is(err, jobs.ErrHalted) || errors.Is(err, jobs.ErrLeased) {
		return err
	}
	said := errors.New(strings.Join(last.Reasons, "; "))
	if last.State == retrain.StateUnjudged { // the same days fail the same way
		return &jobs.Unfillable{Err: said}
	}
	return said
}

// train runs the process, keeps its checkpoints and its lease, and ends it where the
// coordinator or another worker says so.
func (r *Runner) train(ctx context.Context, b bench, l *lease, args []string, hear func(retrain.Event)) (retrain.Event, error) {
	running, end := context.WithCancelCause(ctx)
	watched := make(chan error, 1)
	go func() {
		err := r.watch(running, b, l)
		end(err)
		watched <- err
	}()
	last, err := r.Process.Run(running, append(append([]string{}, r.Program...), args...), r.Stderr, hear)
	end(nil)
	why := <-watched
	switch {
	case last.Event == retrain.EventDone:
		return last, nil
	case errors.Is(why, jobs.ErrLeased):
		return last, why // the checkpoints are the other's now
	}
	return last, errors.Join(why, err, b.save(l, func() func() { return func() {} })) // what it wrote as it ended
}

// watch saves checkpoints and renews the lease until ctx ends. It returns why the
// process has to end before; nil: it has not.
func (r *Runner) watch(ctx context.Context, b bench, l *lease) error {
	every := 3 * r.Session // what a kill costs beside the session itself
	look := time.NewTicker(r.Session / 4)
	defer look.Stop()
	saved, told := time.Now(), ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		err := l.renew()
		if err == nil && time.Since(saved) >= every {
			err, saved = b.save(l, r.Process.Hold), time.Now()
		}
		halted := false
		if err == nil {
			halted, err = r.Folder.Halted(b.key)
		}
		switch {
		case errors.Is(err, jobs.ErrLeased):
			return err
		case err != nil: // storage that is away for a moment does not end a training
			if said := err.Error(); said != told {
				told = said
				r.Log.Warn("the training cannot be shared with other workers now", "err", err)
			}
		case halted:
			return jobs.ErrHalted
		}
	}
}

// take takes the lease of a training, which Ready has found to be free.
func (r *Runner) take(l *lease) error {
	held, err := r.Folder.Lease(l.key)
	if err != nil {
		return err
	}
	if seen, known := r.others[l.key]; known && held != "" && held != seen.lease {
		return jobs.ErrLeased // in this moment
	}
	delete(r.others, l.key)
	taken, err := r.Folder.TakeLease(l.key, held, l.next())
	if err == nil && !taken {
		err = jobs.ErrLeased
	}
	return err
}

// lease says in the shared folder that a worker is at a training.
type lease struct {
	folder jobs.Folder
	key    string
	mine   string // name of the worker
	held   string // as it was written last
	count  int
}

func (l *lease) next() string {
	l.count++
	l.held = l.mine + " " + strconv.Itoa(os.Getpid()) + " " + strconv.Itoa(l.count)
	return l.held
}

// renew changes the lease. The error is jobs.ErrLeased where another has taken it.
func (l *lease) renew() error {
	held, err := l.folder.Lease(l.key)
	if err != nil {
		return err
	}
	if held != "" && held != l.held {
		return jobs.ErrLeased
	}
	_, err = l.folder.TakeLease(l.key, held, l.next())
	return err
}

// end gives the lease up, unless another has it.
func (l *lease) end() error {
	held, err := l.folder.Lease(l.key)
	if err != nil || held != l.held {
		return err
	}
	return l.folder.EndLease(l.key)
}
