package ingest

import (
	"sync"
	"time"
)

// spareAge is how long a template and a spare child wait for the next file: the files
// of a backlog follow one another within seconds, those of a live feed do not.
const spareAge = 5 * time.Second

// A standby makes the children of a reader. While files follow one another it keeps a
// template, and one spare child ready, which has begun while another child decodes.
// Each child still decodes one file only.
type standby struct {
	argv []string

	mu       sync.Mutex // guards the fields below
	taken    int
	template *template // nil: none
	spare    *process  // nil: none
	timer    *time.Timer
}

// take returns a child, and whether it has been waiting.
func (s *standby) take() (p *process, waited bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(spareAge, s.dismiss)
	if p, s.spare = s.spare, nil; p != nil {
		return p, true, nil
	}
	p, err = s.start()
	return p, false, err
}

// start makes a child. A template may have died for a reason that is no fault of this
// file; then there is another. The caller holds mu.
func (s *standby) start() (*process, error) {
	if s.template != nil {
		if p, err := s.template.copy(); err == nil {
			return p, nil
		}
		_ = s.template.end()
		s.template = nil
	}
	t, err := startTemplate(programOf(s.argv), s.argv)
	if err != nil {
		return nil, err
	}
	p, err := t.copy()
	if err != nil {
		return nil, saidBy(t.end(), err)
	}
	s.template = t
	return p, nil
}

// refill starts a spare child, unless there is one already or only one file has
// been read so far: a reader of two files is likely to read a third. A failure
// to start shows when the child is needed.
func (s *standby) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare != nil || s.taken < 2 {
		return
	}
	if p, err := s.start(); err == nil {
		s.spare = p
	}
}

// dismiss ends the template and the spare child.
func (s *standby) dismiss() {
	s.mu.Lock()
	t, p := s.template, s.spare
	s.template, s.spare = nil, nil
	s.mu.Unlock()
	if t != nil {
		_ = t.end()
	}
	if p != nil {
		p.kill()
		_ = p.wait()
	}
}
