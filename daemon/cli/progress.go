package cli

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// Progress is a bar on a terminal and nothing elsewhere: logs and pipes are
// not to be filled with redrawn lines.
type Progress struct {
	pool *mpb.Progress
	bar  *mpb.Bar // nil: there is no terminal
}

// NewProgress begins a bar of total steps; with total 0 Set gives it.
func NewProgress(w io.Writer, name string, total int) *Progress {
	if !IsTerminal(w) {
		return &Progress{}
	}
	pool := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	bar := pool.AddBar(int64(total),
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO, decor.WC{})),
		mpb.BarRemoveOnComplete())
	return &Progress{pool: pool, bar: bar}
}

// Visible reports whether there is a bar to see.
func (p *Progress) Visible() bool { return p.bar != nil }

// Step moves the bar by one.
func (p *Progress) Step() {
	if p.bar != nil {
		p.bar.Increment()
	}
}

// Set moves the bar to done of total.
func (p *Progress) Set(done, total int) {
	if p.bar != nil {
		p.bar.SetTotal(int64(total), false)
		p.bar.SetCurrent(int64(done))
	}
}

// Finish removes the bar.
func (p *Progress) Finish() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.pool.Wait()
	}
}

// IsTerminal reports whether a stream, to read or to write, is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
