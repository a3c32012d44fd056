package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"lacuna/internal/figure"
)

// Progress shows how far a piece of work is: as a bar on a terminal, and elsewhere
// as a line every half minute, so that neither a log nor a person waits in
// silence. Work that ends before leaves no trace.
type Progress struct {
	name string
	pool *mpb.Progress
	bar  *mpb.Bar // nil: there is no terminal
	now  func() time.Time

	mu          sync.Mutex // guards the rest: work reports from goroutines
	done, total int
	began       time.Time
	resting     time.Time // when done was last changed

	once  sync.Once // of Finish
	end   chan struct{}
	ended sync.WaitGroup
}

// progressEvery is how often a line is written where there is no terminal.
const progressEvery = 30 * time.Second

// NewProgress begins to show work of total steps; with total 0 Set gives it, and
// until then nobody knows how long it takes.
func NewProgress(w io.Writer, name string, total int) *Progress {
	p := &Progress{name: name, total: total, now: time.Now, end: make(chan struct{})}
	p.began = p.now()
	if !IsTerminal(w) {
		p.ended.Go(func() { p.tell(w) })
		return p
	}
	p.pool = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	p.bar = p.pool.AddBar(int64(total),
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.caption() })),
		mpb.BarRemoveOnComplete())
	return p
}

// During shows that work of unknown length goes on while do runs.
func During(w io.Writer, name string, do func() error) error {
	p := NewProgress(w, name, 0)
	defer p.Finish()
	return do()
}

// tell writes a line now and then, until the work is done.
func (p *Progress) tell(w io.Writer) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
			fmt.Fprintf(w, "%s: %s\n", p.name, p.caption())
		}
	}
}

// caption says how far the work is and how long it will still take, by its pace so
// far.
func (p *Progress) caption() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.now().Sub(p.began)
	if p.total <= 0 || p.done <= 0 {
		return "at it for " + figure.Duration(since.Round(time.Second))
	}
	left := time.Duration(float64(p.resting.Sub(p.began)) / float64(p.done) * float64(p.total-p.done))
	left = max(left-p.now().Sub(p.resting), 0)
	return fmt.Sprintf("%d of %d, about %s left", p.done, p.total, figure.Duration(left.Round(time.Second)))
}

// Visible reports whether there is a bar to see.
func (p *Progress) Visible() bool { return p.bar != nil }

// Step moves the work on by one.
func (p *Progress) Step() {
	p.mu.Lock()
	done, total := p.done+1, p.total
	p.mu.Unlock()
	p.Set(done, total)
}

// Set says that done of total is done.
func (p *Progress) Set(done, total int) {
	p.mu.Lock()
	if done != p.done {
		p.resting = p.now()
	}
	p.done, p.total = done, total
	p.mu.Unlock()
	if p.bar != nil { // without the lock: the bar asks for its caption
		p.bar.SetTotal(int64(total), false)
		p.bar.SetCurrent(int64(done))
	}
}

// Finish ends the report, and removes the bar. It may be called again.
func (p *Progress) Finish() {
	p.once.Do(func() {
		close(p.end)
		p.ended.Wait()
		if p.bar != nil {
			p.bar.Abort(true)
			p.pool.Wait()
		}
	})
}

// A Reading shows how much of a stream has been read, in MiB.
type Reading struct {
	*Progress
	from  io.Reader
	read  int64
	bytes int64
}

// NewReading begins to show how a stream of a known size is read.
func NewReading(w io.Writer, name string, from io.Reader, bytes int64) *Reading {
	return &Reading{Progress: NewProgress(w, name, int(bytes>>20)), from: from, bytes: bytes}
}

func (r *Reading) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	before := r.read >> 20
	r.read += int64(n)
	if now := r.read >> 20; now != before {
		r.Set(int(now), int(r.bytes>>20))
	}
	return n, err
}

// IsTerminal reports whether a stream, to read or to write, is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
