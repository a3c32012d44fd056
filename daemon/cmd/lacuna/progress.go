package main

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress is a bar on a terminal and nothing elsewhere: logs and pipes are
// not to be filled with redrawn lines.
type progress struct {
	pool *mpb.Progress
	bar  *mpb.Bar
}

// newProgress begins a bar of total steps; with total 0 set gives it.
func newProgress(w io.Writer, name string, total int) *progress {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &progress{}
	}
	pool := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	bar := pool.AddBar(int64(total),
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO, decor.WC{})),
		mpb.BarRemoveOnComplete())
	return &progress{pool: pool, bar: bar}
}

func (p *progress) step() {
	if p.bar != nil {
		p.bar.Increment()
	}
}

func (p *progress) set(done, total int) {
	if p.bar != nil {
		p.bar.SetTotal(int64(total), false)
		p.bar.SetCurrent(int64(done))
	}
}

// finish removes the bar.
func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.pool.Wait()
	}
}
