package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"lacuna/daemon/fill"
	"lacuna/daemon/slots"
	"lacuna/publish"
)

// Here does the jobs of a dataset in this process, beside the preparation of the next
// ones: while one is analysed another is decoded and a third written. It is the fleet
// and the folder of a worker that has no other machines. Nothing of a job outlives the
// process: one that was cut off is prepared anew.
type Here struct {
	staging func() (string, error)  // makes a folder from which files of products can be renamed
	turns   *slots.Slots            // of the analyses of all datasets; nil: there is no other
	hold    func() (release func()) // pauses trainings while a job is done
	beat    func()                  // called as an analysis gets on

	device *semaphore.Weighted

	mu   sync.Mutex // guards jobs
	jobs map[string]*hereJob
}

// hereJob is a job of this process.
type hereJob struct {
	fill.Job
	id      string
	packing Packing
	release func() // of its model
	cancel  context.CancelFunc
	ended   chan struct{} // closed when nothing of it runs any more; nil: it was not begun
	dir     string        // with its files; empty: none were written
}

// InFlight is how many jobs of a dataset are under way here: one that waits, or is
// analysed by processors, beside one that a GPU has and one that is written.
const InFlight = 3

// both is the share of a machine that an analysis takes without a GPU: all of it. With
// one, processors analyse one field while networks fill another.
const both = 2

// NewHere returns a place for jobs. staging makes a folder from which products can be
// renamed into theirs; turns bound the analyses of all datasets; hold pauses trainings
// while a job is done; beat is called as it gets on.
func NewHere(staging func() (string, error), turns *slots.Slots, hold func() (release func()), beat func()) *Here {
	return &Here{staging: staging, turns: turns, hold: hold, beat: beat, device: semaphore.NewWeighted(both), jobs: map[string]*hereJob{}}
}

// Pack keeps a job, and returns what others need to know of it.
func (h *Here) Pack(job fill.Job, p Packing) (Message, error) {
	m, err := outline(job, p)
	if err != nil {
		return m, err
	}
	job.Filled = m.Filled
	kept := &hereJob{Job: job, packing: p, release: func() {}}
	if job.Model != nil {
		m.Model, kept.release = &Model{Version: job.Model.Name()}, job.Model.Use()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.jobs[placeOf(m)]; before != nil {
		kept.release()
		return m, fmt.Errorf("the job of %s is under way already", p.Granule)
	}
	h.jobs[placeOf(m)] = kept
	return m, nil
}

// placeOf names the revision that a job is of: there is one job of each at a time.
func placeOf(m Message) string { return openKey(m.Dataset, m.Granule, m.Revision) }

// Send begins a job that was packed. answer is called once with its result, unless it
// is dropped before.
func (h *Here) Send(ctx context.Context, m Message, _ bool, answer func(Result)) error {
	id, err := m.ID()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	job := h.jobs[placeOf(m)]
	if job == nil || job.ended != nil {
		return errors.New("it was not packed, or begun before")
	}
	// What the context of the task in hand ends with is no reason to stop.
	ctx, job.cancel = context.WithCancel(context.WithoutCancel(ctx))
	job.id, job.ended = id, make(chan struct{})
	go func() {
		r, err := h.do(ctx, job)
		dropped := ctx.Err() != nil
		r.Job, r.Worker = id, "of this process"
		if err != nil {
			r.Failed = err.Error()
		}
		job.release()
		if !dropped {
			answer(r)
		}
		close(job.ended)
	}()
	return nil
}

// do makes the product of a job. A panic is an error.
func (h *Here) do(ctx context.Context, job *hereJob) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	defer h.hold()()
	outcome, began, err := h.analyse(ctx, job)
	defer func() { r.Seconds = time.Since(began).Seconds() }()
	if err != nil {
		return r, err
	}
	dir, err := h.staging()
	if err != nil {
		return r, err
	}
	h.mu.Lock()
	job.dir = dir
	h.mu.Unlock()
	h.beat()
	writing := time.Now()
	name := publish.WithMode(job.packing.Product, outcome.Product.Mode)
	r.Made, err = Write(filepath.Join(dir, staged), Draft{Name: name, Picture: job.packing.Picture}, job.Granule, outcome)
	r.Took = tookBy(outcome)
	r.Took.Writing = time.Since(writing).Seconds()
	h.beat()
	return r, err
}

// staged is the name of a product in its folder, before it is stored.
const staged = "product"

// analyse fills a job when it is its turn, and returns when that was.
func (h *Here) analyse(ctx context.Context, job *hereJob) (outcome fill.Outcome, began time.Time, err error) {
	began = time.Now()
	share := int64(both)
	if job.Model != nil && job.Model.OnGPU() {
		share = 1
	}
	if err := h.device.Acquire(ctx, share); err != nil {
		return outcome, began, err
	}
	defer h.device.Release(share)
	err = h.turns.Within(ctx, false, func() error {
		began = time.Now()
		h.beat()
		outcome, err = fill.Analyse(ctx, job.Job, func(int, int) { h.beat() })
		return err
	})
	return outcome, began, err
}

// Drop ends all jobs and forgets them, whatever has become of them.
func (h *Here) Drop() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for place := range h.jobs {
		errs = append(errs, h.forget(place))
	}
	return errors.Join(errs...)
}

// forget ends a job and removes its files. The caller holds h.mu, which is free while it
// waits.
func (h *Here) forget(place string) error {
	job := h.jobs[place]
	if job == nil {
		return nil
	}
	delete(h.jobs, place)
	if job.ended == nil {
		job.release()
		return nil
	}
	job.cancel()
	h.mu.Unlock()
	<-job.ended
	h.mu.Lock()
	if job.dir == "" {
		return nil
	}
	return os.RemoveAll(job.dir)
}

// Close forgets the job of a revision, whose product is stored or is made otherwise.
func (h *Here) Close(dataset, granule string, revision int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.forget(openKey(dataset, granule, revision))
}

// Place moves the files of a result to path.
func (h *Here) Place(_ context.Context, r Result, path string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, job := range h.jobs {
		if job.dir == "" || job.id != r.Job {
			continue
		}
		from := filepath.Join(job.dir, staged)
		err := os.Rename(from, path)
		for _, beside := range [][2]string{{membersPath(from), membersPath(path)}, {from + pictureEnding, path + pictureEnding}} {
			if moved := os.Rename(beside[0], beside[1]); !errors.Is(moved, fs.ErrNotExist) {
				err = errors.Join(err, moved)
			}
		}
		return err
	}
	return fmt.Errorf("job %s has no files here: %w", r.Job, fs.ErrNotExist)
}

// Open is for jobs that outlive a process, as are the methods below.
func (h *Here) Open(Message) error { return nil }

// Message returns none.
func (h *Here) Message(string, string, int) (m Message, ok bool, err error) { return m, false, nil }

// Opened returns none.
func (h *Here) Opened(string) ([]Message, error) { return nil, nil }

// Forget has nothing to forget: a result is kept by whoever it was given to.
func (h *Here) Forget(string) error { return nil }
