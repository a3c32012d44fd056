package ingest

import (
	"os"
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
	plain    bool      // templates do not work here
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

// start makes a child: a copy of the template where the program is our own, for only
// such a one can be a template. The caller holds mu.
func (s *standby) start() (*process, error) {
	path := programOf(s.argv)
	self, err := os.Executable()
	if s.plain || err != nil || path == s.argv[0] && path != self {
		return startProgram(path, s.argv)
	}
	// A template may have died for a reason that is no fault of this file; then there
	// is another. Where that cannot be copied either, this system does not let it.
	for again := s.template != nil; ; again = false {
		p, err := s.copied(path)
		if err == nil {
			return p, nil
		}
		s.endTemplate()
		if !again {
			s.plain = true
			return startProgram(path, s.argv)
		}
	}
}

// copied copies the template, and starts it where there is none.
func (s *standby) copied(path string) (_ *process, err error) {
	if s.template == nil {
		if s.template, err = startTemplate(path, s.argv); err != nil {
			return nil, err
		}
	}
	return s.template.copy()
}

func (s *standby) endTemplate() {
	if s.template != nil {
		s.template.end()
	}
	s.template = nil
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
	defer s.mu.Unlock()
	s.endTemplate()
	if s.spare != nil {
		s.spare.kill()
		_ = s.spare.wait()
	}
	s.spare = nil
}
