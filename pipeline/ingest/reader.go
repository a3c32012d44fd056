package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest/ncfile"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// A Reader decodes files, each in a process of its own. It is safe for
// concurrent use. While files follow one another it keeps one more process
// ready, which ends by itself after a few idle seconds or with the program.
type Reader struct {
	cfg     Config
	standby standby
	plane   atomic.Pointer[field.Plane] // of the granule before
}

// NewReader returns a Reader whose children are started as child: a program
// and its arguments that end in a call of RunChild. It starts nothing yet.
func NewReader(cfg Config, child []string) (*Reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ingest config: %w", err)
	}
	if len(child) == 0 {
		return nil, errors.New("ingest: no command for the decoding child")
	}
	argv := slices.Clone(child)
	if filepath.Base(argv[0]) != argv[0] { // a path must be absolute: the child runs in another folder
		var err error
		if argv[0], err = filepath.Abs(argv[0]); err != nil {
			return nil, fmt.Errorf("ingest: %w", err)
		}
	}
	return &Reader{cfg: cfg, standby: standby{argv: argv}}, nil
}

// Read decodes the file at path. A file that cannot be used gives a
// *BadGranule; any other error is a failure of this process, not of the file.
func (r *Reader) Read(ctx context.Context, path string, opt Options) (Granule, error) {
	if err := opt.Validate(); err != nil {
		return Granule{}, fmt.Errorf("ingest options: %w", err)
	}
	var g Granule
	sum, err := r.decode(ctx, path, request{Want: wantGranule, Options: opt}, func(x *extract) (err error) {
		g, err = x.granule(filepath.Base(path), opt)
		return err
	})
	if err != nil {
		return Granule{}, named(path, err)
	}
	g.SHA256 = sum
	r.share(g.Fields)
	return g, nil
}

// share lets granules that have the same places of cells, as those of a dataset
// do, have them in memory once.
func (r *Reader) share(fields []field.Field) {
	own, before := fields[0].Grid.Plane, r.plane.Load()
	switch {
	case own == nil:
	case before != nil && slices.Equal(own.Lat, before.Lat) && slices.Equal(own.Lon, before.Lon) && own.Width == before.Width:
		for i := range fields {
			fields[i].Grid.Plane = before
		}
	default:
		r.plane.Store(own)
	}
}

// ReadSwath decodes a file whose pixels have places and make no grid. The fields
// have a grid with nothing but a plane, in which a place may be NaN, and cannot be
// filled: they are to be binned. Errors are as those of Read.
func (r *Reader) ReadSwath(ctx context.Context, path string, opt Options) (Granule, error) {
	if err := opt.Validate(); err != nil {
		return Granule{}, fmt.Errorf("ingest options: %w", err)
	}
	opt.BBox = nil // whoever bins cuts
	var g Granule
	sum, err := r.decode(ctx, path, request{Want: wantGranule, Options: opt}, func(x *extract) (err error) {
		x.swath = true
		g, err = x.granule(filepath.Base(path), opt)
		return err
	})
	if err != nil {
		return Granule{}, named(path, err)
	}
	g.SHA256 = sum
	return g, nil
}

// ReadSea returns the sea mask that the file at path holds for grid. Errors
// are as those of Read.
func (r *Reader) ReadSea(ctx context.Context, path string, grid field.Grid) (field.Mask, error) {
	var mask field.Mask
	_, err := r.decode(ctx, path, request{Want: wantSea}, func(x *extract) (err error) {
		mask, err = x.sea(grid)
		return err
	})
	if err != nil {
		return nil, named(path, err)
	}
	return mask, nil
}

// named adds the name of the file to an error.
func named(path string, err error) error {
	if b := (*BadGranule)(nil); errors.As(err, &b) {
		if b.File == "" {
			return &BadGranule{File: filepath.Base(path), Problem: b.Problem, Remedy: b.Remedy}
		}
		return b
	}
	return fmt.Errorf("read %s: %w", filepath.Base(path), err)
}

// decode opens and sniffs a file, has a child decode it, passes the extract to
// use, and meanwhile hashes the file.
func (r *Reader) decode(ctx context.Context, path string, req request, use func(*extract) error) (sum string, err error) {
	req.Name = filepath.Base(path)
	if err := CheckName(req.Name); err != nil {
		return "", err
	}
	f, size, err := r.openGranule(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	if err := ncfile.Sniff(f, size); err != nil {
		return "", err
	}
	req.FileBytes = size
	req = r.limited(req)
	g, work := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		sum, err = hash(work, io.NewSectionReader(f, 0, size))
		return err
	})
	g.Go(func() error { return r.ask(work, f, req, use) })
	err = g.Wait()
	return sum, err
}

// limited adds the limits of the child to a request.
func (r *Reader) limited(req request) request {
	req.MemoryBytes = int64(r.cfg.MemoryMiB) << 20
	req.CPUSeconds = uint64(math.Ceil(r.cfg.CPUTime.Seconds()))
	return req
}

// openRegular opens a file for reading. It does not wait for the other end of
// a named pipe.
func openRegular(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Type() != fs.FileMode(0) {
		err = bad("it is not a regular file", "leave it out")
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func hash(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 256<<10) // it stays in the cache of the core
	for {
		n, err := r.Read(buf)
		h.Write(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", fmt.Errorf("hash: %w", err)
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}

// ask has a child decode f and passes the extract to use while the child exits. A child
// that somebody else has killed, as the kernel does for want of memory, says nothing of
// the file: another one gets it. If that is killed too, it is the file.
func (r *Reader) ask(ctx context.Context, f *os.File, req request, use func(*extract) error) error {
	killed, err := r.askOne(ctx, f, req, use)
	if !killed || ctx.Err() != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil { // the child may have read on
		return err
	}
	_, err = r.askOne(ctx, f, req, use)
	return err
}

// askOne is one attempt of ask. killed is true where the child was killed by neither the
// file nor a limit.
func (r *Reader) askOne(ctx context.Context, f *os.File, req request, use func(*extract) error) (killed bool, err error) {
	p, err := r.assign(f, req)
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(limited, p.kill)()
	r.standby.refill()
	x, err := receive(p.stdout, req)
	silent := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case err == nil:
		err = use(x)
	case !silent:
		p.kill() // the child may still be writing, and nobody reads
	}
	died := p.wait()
	if died != nil {
		r.standby.dismiss() // see template
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return false, bad(fmt.Sprintf("decoding it took longer than %v", r.cfg.Timeout),
			"the file is probably damaged: "+again+"; if it is sound and large, raise timeout")
	case errors.Is(err, errNonsense):
		return false, bad(fmt.Sprintf("the decoder did not survive it (%v)", err), "the file is probably damaged: "+again)
	case silent, err == nil && died != nil:
		state, stderr := p.state, p.stderr.String()
		status, _ := state.Sys().(syscall.WaitStatus)
		killed = status.Signaled() && status.Signal() == syscall.SIGKILL && stderr == "" && !r.spent(state)
		return killed, r.causeOfDeath(state, stderr)
	}
	return false, err
}

// spent reports whether a child was ended by its limit of CPU time: the kernel counts in
// ticks.
func (r *Reader) spent(state *os.ProcessState) bool {
	return !state.Exited() && 10*(state.UserTime()+state.SystemTime()) >= 9*r.cfg.CPUTime
}

// assign hands f to a child. A spare child may have died for a reason that is
// no fault of this file; then a fresh one gets it.
func (r *Reader) assign(f *os.File, req request) (*process, error) {
	for {
		p, waited, err := r.standby.take()
		if err != nil {
			return nil, err
		}
		if err = p.hand(f, req); err == nil {
			return p, nil
		}
		p.kill()
		_ = p.wait()
		if !waited {
			return nil, err
		}
	}
}

// causeOfDeath returns the *BadGranule for a file whose decoding killed the child.
func (r *Reader) causeOfDeath(state *os.ProcessState, stderr string) error {
	remedy := "the file is probably damaged: " + again
	stderr, _, _ = strings.Cut(stderr, " goroutine ") // without the stack traces
	switch {
	// Reported by the runtime, or inferred if the kill came first.
	case strings.Contains(stderr, "cpu limit exceeded"), r.spent(state):
		return bad(fmt.Sprintf("decoding it took more than %v of CPU time", r.cfg.CPUTime), remedy+"; if it is sound and large, raise cpu_time")
	case strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "malloc failed"):
		return bad(fmt.Sprintf("decoding it took more than %d MiB of memory", r.cfg.MemoryMiB), remedy+"; if it is sound and large, raise memory_mib")
	case stderr != "":
		return bad(fmt.Sprintf("the decoder did not survive it (%v: %.200s)", state, stderr), remedy)
	}
	return bad(fmt.Sprintf("the decoder did not survive it (%v)", state), remedy)
}
