package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lacuna/daemon/jobs"
	"lacuna/daemon/retrain"
	"lacuna/daemon/trainjob"
	"lacuna/daemon/workers"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Work does jobs of the coordinator, until ctx is cancelled: fills and, unless it is for
// fills only, trainings where workers.train says so. It needs the section workers, the
// engine and the limits of decoding; datasets and their state are
// the coordinator's.
func (d *Daemon) Work(ctx context.Context, name string, fillsOnly bool) (err error) {
	cfg := d.cfg.workers()
	if cfg.Type != workers.Kafka {
		return fmt.Errorf("%w: workers.type is %s: a worker has nothing to do unless it is %s", ErrConfig, cfg.Type, workers.Kafka)
	}
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find a name for the worker: %w: give it one with --name", err)
		}
		name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	cache, remove, err := workerCache(os.TempDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	folder, err := cfg.Folder()
	if err != nil {
		return fmt.Errorf("%w: workers: %w", ErrConfig, err)
	}
	var e *engine.Engine
	runner := &jobs.Runner{
		Folder: folder, Cache: filepath.Clean(cache), Reader: d.reader,
		Open: func() (infer.Device, error) {
			var err error
			if e, err = engine.Open(d.cfg.Train.Engine, d.cfg.Train.Libraries(), d.log); err != nil {
				return infer.Device{}, err
			}
			return infer.Device{Backend: e, GPU: engine.OnGPU(e.Kind), Try: e.Try}, nil
		},
	}
	defer func() {
		runner.Close()
		if e != nil {
			e.Finalize()
		}
	}()
	fills := func(ctx context.Context, m jobs.Message, progress workers.Progress) (jobs.Result, error) {
		return runner.Run(ctx, m, func(done, total int) { progress("", done, total) })
	}
	w := &workers.Worker{Config: cfg, Name: name, Folder: folder, Do: fills, Now: d.parts.Now, Log: d.log}
	if fillsOnly || !cfg.Train {
		return w.Run(ctx)
	}
	return d.workAndTrain(ctx, w, cache)
}

// workAndTrain does trainings beside the fills of a worker, for which they rest. Those
// of a backfill and trainings take turns.
func (d *Daemon) workAndTrain(ctx context.Context, w *workers.Worker, cache string) error {
	if len(d.parts.Program) == 0 {
		return errors.New("train: the program that trains is not known")
	}
	process := retrain.NewProcess(d.cfg.Train)
	trainings := &trainjob.Runner{
		Name: w.Name, Folder: w.Folder, Cache: cache, Program: d.parts.Program, Engine: d.cfg.Train.Engine,
		Process: process, Session: w.Config.Session, Now: d.parts.Now, Stderr: os.Stderr, Log: w.Log,
	}
	t := &workers.Worker{Config: w.Config, Name: w.Name + "-train", Trains: true, Folder: w.Folder, Ready: trainings.Ready, Do: trainings.Run, Now: w.Now, Log: w.Log}
	fills := w.Do
	w.Ready = func(m jobs.Message) error {
		if m.Backlog && process.Owed() > 0 {
			return jobs.ErrLeased // to the training, as it were: live jobs go before it meanwhile
		}
		return nil
	}
	w.Do = func(ctx context.Context, m jobs.Message, progress workers.Progress) (jobs.Result, error) {
		hold := process.Hold
		if m.Backlog {
			hold = process.HoldInTurn
		}
		defer hold()()
		return fills(ctx, m, progress)
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return w.Run(ctx) })
	both.Go(func() error { return t.Run(ctx) })
	return both.Wait()
}

// workerCache makes a folder for the files of a worker, and removes those that killed
// workers have left. A worker that lives has its folder locked.
func workerCache(top string) (dir string, remove func() error, err error) {
	const pattern = "lacuna-worker-"
	left, _ := filepath.Glob(filepath.Join(top, pattern+"*"))
	for _, old := range left {
		if unlock, err := lockFolder(old); err == nil {
			err = errors.Join(os.RemoveAll(old), unlock())
			if err != nil {
				return "", nil, fmt.Errorf("remove what a worker has left: %w", err)
			}
		}
	}
	for range 20 {
		if dir, err = os.MkdirTemp(top, pattern); err != nil {
			return "", nil, err
		}
		var unlock func() error
		if unlock, err = lockFolder(dir); err != nil {
			continue // another worker that starts took it for one that was left
		}
		if _, err = os.Stat(dir); err == nil { // with the lock nobody takes it away any more
			return dir, func() error { return errors.Join(os.RemoveAll(dir), unlock()) }, nil
		}
		_ = unlock() // of a folder that is gone
	}
	return "", nil, fmt.Errorf("make a folder for the worker: %w", err)
}

// lockFolder locks a folder of this user until unlock is called or the process ends;
// it does not wait.
func lockFolder(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f.Close, nil
}
