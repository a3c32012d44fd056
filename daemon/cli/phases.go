package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"lacuna/internal/figure"
)

// PhaseStep is how far a phase of a long run has come.
type PhaseStep struct {
	Phase       string
	Step, Steps int
	Loss        float64
	Score       *float64 // on held-out days; nil: not asked at this step
}

// Phases shows how a run of several phases goes: a bar for each on a terminal, a
// line now and then elsewhere.
type Phases struct {
	w        io.Writer
	terminal bool
	tell     func(s PhaseStep, left time.Duration) // a line; left is 0 where it is not known

	mu      sync.Mutex // guards the rest: phases report from goroutines
	phase   string
	began   time.Time // of the phase in this process
	first   int       // step with which it began here
	written time.Time // the last line
	score   *float64  // the last one
	pool    *mpb.Progress
	bar     *mpb.Bar
	caption string
}

// phaseEvery is how often a line is written where there is no terminal.
const phaseEvery = 5 * time.Second

// NewPhases returns a report that writes to w for people.
func NewPhases(w io.Writer) *Phases {
	p := &Phases{w: w, terminal: IsTerminal(w)}
	p.tell = func(s PhaseStep, _ time.Duration) {
		fmt.Fprintf(w, "%s %d/%d  %s\n", s.Phase, s.Step, s.Steps, p.caption)
	}
	return p
}

// TellPhases returns a report that calls tell where one for people would write
// a line.
func TellPhases(tell func(s PhaseStep, left time.Duration)) *Phases { return &Phases{tell: tell} }

// Step reports a step of a phase.
func (p *Phases) Step(s PhaseStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if s.Phase != p.phase {
		p.endBar()
		p.phase, p.began, p.first, p.score, p.written = s.Phase, now, s.Step, nil, time.Time{}
	}
	if s.Score != nil {
		p.score = s.Score
	}
	left := p.left(now, s)
	p.caption = caption(s.Loss, p.score, left)
	if p.terminal {
		p.show(s)
		return
	}
	if now.Sub(p.written) < phaseEvery && s.Score == nil && s.Step < s.Steps {
		return
	}
	p.written = now
	p.tell(s, left)
}

// left estimates the rest of the phase from its pace in this process.
func (p *Phases) left(now time.Time, s PhaseStep) time.Duration {
	done := s.Step - p.first
	if done <= 0 {
		return 0
	}
	return time.Duration(float64(now.Sub(p.began)) / float64(done) * float64(s.Steps-s.Step))
}

func caption(loss float64, score *float64, left time.Duration) string {
	text := ""
	if loss != 0 {
		text += fmt.Sprintf("loss %.4g  ", loss)
	}
	if score != nil {
		text += fmt.Sprintf("held-out %.4g  ", *score)
	}
	if left > 0 {
		text += figure.Duration(left) + " left"
	}
	return text
}

// show moves the bar of the phase.
func (p *Phases) show(s PhaseStep) {
	if p.bar == nil {
		p.pool = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(40))
		p.bar = p.pool.AddBar(int64(max(s.Steps, 1)), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(s.Phase+" "), decor.CountersNoUnit("%d/%d ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.caption
			})))
	}
	p.bar.SetCurrent(int64(s.Step))
}

// endBar removes the bar. The lock is held, and the bar's caption wants it:
// it is given up for the moment.
func (p *Phases) endBar() {
	if p.bar == nil {
		return
	}
	bar, pool := p.bar, p.pool
	p.bar = nil
	p.mu.Unlock()
	bar.Abort(true)
	pool.Wait()
	p.mu.Lock()
}

// Finish removes the bar.
func (p *Phases) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endBar()
}
