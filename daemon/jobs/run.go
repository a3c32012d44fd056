package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/version"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/parts"
	"lacuna/publish"
	"lacuna/publish/disk"
)

// Reader decodes granules.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// Runner does jobs. It keeps the granules of the last jobs and the last model in
// memory, because the next job mostly has the same.
type Runner struct {
	Folder Folder
	Cache  string // folder of copies of granules, for the time of decoding
	Reader Reader
	Open   func() (infer.Device, error) // opens the device that networks run on

	mu      sync.Mutex // one job at a time
	decoded map[string]ingest.Granule
	model   *infer.Model
	device  *infer.Device
}

// Errors that are no fault of a job: the worker should end, and leave it to another.
var (
	// ErrProgram says that a job is of another version of the program.
	ErrProgram = errors.New("the job is of another version of the program")
	// ErrDevice says that the GPU of this worker no longer computes.
	ErrDevice = errors.New("the GPU no longer computes")
)

// Unfillable says that the granule of a job cannot be filled by its method, on any
// machine.
type Unfillable struct{ Err error }

func (u *Unfillable) Error() string { return u.Err.Error() }

func (u *Unfillable) Unwrap() error { return u.Err }

const pictureEnding = ".png"

func membersPath(path string) string { return disk.MembersPath(path) }

// Run makes the product of a job and puts its files into the folder. The error is
// *Unfillable where another attempt would end the same way, and ErrProgram or ErrDevice
// where another worker must do it; after any other it may be tried again.
func (r *Runner) Run(ctx context.Context, m Message, progress func(done, total int)) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, err := m.ID()
	if err != nil {
		return Result{}, err
	}
	if !m.Current() {
		return Result{}, fmt.Errorf("%w: it is of %s, and this worker is %s: run the same on all machines", ErrProgram, m.Program, version.String())
	}
	job, err := r.unpack(ctx, m)
	if err != nil {
		return Result{}, err
	}
	if m.Score != "" {
		score, err := ScoreDay(ctx, job, m.Score, progress)
		return Result{Job: id, Score: &score}, r.unfillable(ctx, job, err)
	}
	outcome, err := fill.Analyse(ctx, job, progress)
	if err != nil {
		return Result{}, r.unfillable(ctx, job, err)
	}
	change, err := r.compare(ctx, m, job, outcome)
	if err != nil {
		return Result{}, err
	}
	result, err := r.write(id, m, job, outcome)
	result.Change = change
	return result, err
}

// compare compares an outcome with the former product, where the message names one. A
// product that cannot be read cannot be compared with.
func (r *Runner) compare(ctx context.Context, m Message, job fill.Job, outcome fill.Outcome) (c *Change, err error) {
	if m.Before == nil {
		return nil, nil
	}
	path, done, err := r.copyOf(*m.Before)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	change, _ := Compare(ctx, r.Reader, path, job.Granule, outcome)
	return &change, ctx.Err()
}

// unfillable returns the error of an analysis: that of the context where it was
// cancelled, that of the device where it is gone, and else *Unfillable.
func (r *Runner) unfillable(ctx context.Context, job fill.Job, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if d := r.device; job.Model != nil && d != nil && d.GPU && d.Try != nil {
		if gone := d.Try(); gone != nil {
			return fmt.Errorf("%w: %w", ErrDevice, gone)
		}
	}
	return &Unfillable{Err: err}
}

// write writes the product to files and shares them.
func (r *Runner) write(id string, m Message, job fill.Job, outcome fill.Outcome) (result Result, err error) {
	dir, err := os.MkdirTemp(r.Cache, "product-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "product")
	began := time.Now()
	result.Job, result.Took = id, tookBy(outcome)
	defer func() { result.Took.Writing = time.Since(began).Seconds() }()
	if result.Made, err = Write(path, Draft{Name: publish.WithMode(m.Product, outcome.Product.Mode), Picture: m.Picture}, job.Granule, outcome); err != nil {
		return result, err
	}
	share := func(path string) (string, int64, error) {
		sum, size, err := sumFile(path)
		if err != nil {
			return "", 0, err
		}
		return sum, size, r.Folder.Add(path, sum)
	}
	if result.SHA256, result.Size, err = share(path); err != nil {
		return result, err
	}
	if result.Members != nil {
		if result.MembersSum, _, err = share(membersPath(path)); err != nil {
			return result, err
		}
	}
	if result.Drawn {
		result.PictureSum, _, err = share(path + pictureEnding)
	}
	return result, err
}

// unpack returns the job of a message.
func (r *Runner) unpack(ctx context.Context, m Message) (fill.Job, error) {
	job := fill.Job{
		Dataset: m.Dataset, SeaMask: m.SeaMask, Fill: m.Fill, Widening: m.Widening, Trust: m.Trust, Interpolated: m.Interpolated,
		Revision: m.Revision, Created: m.Created, Published: m.Published, Fetched: m.Fetched, Filled: m.Filled, Credits: m.Credits, Layout: m.Layout,
		Constants: m.Constants, Centre: m.Centre, Backlog: m.Backlog, Scored: m.Score != "",
	}
	var err error
	if job.Granule, job.History, err = r.granules(ctx, m); err != nil {
		return job, err
	}
	if err := r.Folder.unpackScreened(m.Screened, &job); err != nil {
		return job, err
	}
	if job.Explained, err = r.Folder.unpackExplained(m.Explained); err != nil {
		return job, err
	}
	if job.Sea, err = r.Folder.unpackMask(m.Sea); err != nil {
		return job, err
	}
	if job.Seen, err = r.Folder.unpackMask(m.Seen); err != nil {
		return job, err
	}
	if m.Scaling != nil {
		content, err := r.Folder.Read(m.Scaling.SHA256)
		if err != nil {
			return job, err
		}
		s, err := parts.DecodeScaling(content)
		if err != nil {
			return job, fmt.Errorf("read the scaling of %s: %w", m.Dataset, err)
		}
		job.Scaling = &fill.LocalScaling{Scaling: s.Samples(), Days: m.Scaling.Days}
	}
	if m.Model != nil {
		job.Model, err = r.load(*m.Model)
	}
	return job, err
}

// granules reads the granule of a job and its neighbours, and forgets all others. It
// remembers of each what its neighbours need.
func (r *Runner) granules(ctx context.Context, m Message) (target ingest.Granule, history []ingest.Granule, err error) {
	used := map[string]bool{}
	read := func(f File, whole bool) (ingest.Granule, error) {
		key := fmt.Sprintf("%s %s %+v", f.SHA256, f.Name, m.Options)
		used[key] = true
		if g, ok := r.decoded[key]; ok && (!whole || g.Whole()) {
			return g, nil
		}
		g, err := r.decode(ctx, f, m.Options)
		if err == nil {
			if r.decoded == nil {
				r.decoded = map[string]ingest.Granule{}
			}
			r.decoded[key] = g.Neighbour() // which is all that later jobs need of it
			if !whole {
				g = r.decoded[key]
			}
		}
		return g, err
	}
	readAll := func(files []File, whole bool) (all []ingest.Granule, err error) {
		for i, f := range files {
			g, err := read(f, whole && i == 0)
			if err != nil {
				return nil, err
			}
			all = append(all, g)
		}
		return all, nil
	}
	if history, err = readAll(m.History, false); err != nil {
		return target, nil, err
	}
	if m.Target.Absent {
		around, err := readAll(m.Target.Around, true) // the target is like the first
		if err != nil || len(around) == 0 {
			return target, nil, errors.Join(err, fmt.Errorf("the job of %s, which is absent, names %d neighbours", m.Granule, len(m.Target.Around)))
		}
		target, err = fill.Absent(m.Granule, m.Target.First, around)
		if err != nil {
			return target, nil, &Unfillable{Err: err}
		}
	} else if target, err = read(m.Target.File, true); err != nil {
		return target, nil, err
	}
	maps.DeleteFunc(r.decoded, func(key string, _ ingest.Granule) bool { return !used[key] })
	return target, history, nil
}

// decode reads a granule out of the shared folder.
func (r *Runner) decode(ctx context.Context, f File, opt ingest.Options) (g ingest.Granule, err error) {
	path, done, err := r.copyOf(f)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, done()) }()
	return r.Reader.Read(ctx, path, opt)
}

// copyOf copies a file out of the shared folder, so that its name is right and its
// bytes are those of its hash, until done is called.
func (r *Runner) copyOf(f File) (path string, done func() error, err error) {
	if filepath.Base(f.Name) != f.Name || f.Name == "." || f.Name == ".." {
		return "", nil, fmt.Errorf("the name %q of a granule is none of a file", f.Name)
	}
	dir, err := os.MkdirTemp(r.Cache, "granule-")
	if err != nil {
		return "", nil, err
	}
	done = func() error { return os.RemoveAll(dir) }
	path = filepath.Join(dir, f.Name)
	if err := r.Folder.Fetch(f.SHA256, path); err != nil {
		return "", nil, errors.Join(err, done())
	}
	return path, done, nil
}

// load returns the model of a job, and keeps it until another is asked for.
func (r *Runner) load(m Model) (*infer.Model, error) {
	if r.model != nil && r.model.Name() == m.Version {
		return r.model, nil
	}
	if r.device == nil {
		d, err := r.Open()
		if err != nil {
			return nil, fmt.Errorf("open the engine: %w", err)
		}
		r.device = &d
	}
	model, err := fill.LoadModelFrom(m.Version, *r.device, func(name string) ([]byte, error) {
		for _, f := range m.Files {
			if f.Name == name {
				return r.Folder.Read(f.SHA256)
			}
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	if r.model != nil {
		r.model.Close()
	}
	r.model = model
	return model, nil
}

// Close frees the model.
func (r *Runner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.model != nil {
		r.model.Close()
		r.model = nil
	}
}

func sumFile(path string) (sum string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return copySum(io.Discard, file)
}
