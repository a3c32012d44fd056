package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lacuna/daemon/jobs"
	"lacuna/daemon/workers"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
)

// Work does fill jobs of the coordinator, until ctx is cancelled. It needs the
// section workers, the engine and the limits of decoding; datasets and their state are
// the coordinator's.
func (d *Daemon) Work(ctx context.Context, name string) (err error) {
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
	cache, err := os.MkdirTemp("", "lacuna-worker-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
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
	w := &workers.Worker{Config: cfg, Name: name, Folder: runner.Folder, Do: runner.Run, Now: d.parts.Now, Log: d.log}
	return w.Run(ctx)
}
