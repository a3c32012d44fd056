package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"lacuna/daemon/jobs"
)

// A job that keeps failing does not hold up those behind it, and is not lost with its
// worker when those are done.
func failingAside(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Partitions, c.Tries = 1, 1000 })
	var fails atomic.Bool
	fails.Store(true)
	do := func(_ context.Context, m jobs.Message) (jobs.Result, error) {
		switch {
		case m.Granule == "lost.nc" && fails.Load():
			return jobs.Result{}, errors.New("the disk is full")
		case m.Granule == "gone.nc":
			_, err := s.folder.Read(strings.Repeat("0", 64))
			return jobs.Result{}, err
		}
		return jobs.Result{}, nil
	}
	stop := s.worker("a", do)
	lost := s.send("lost.nc", true)
	if r := s.await("a job whose files are gone", s.send("gone.nc", true)); r.Dead > 0 || !r.Gone || !strings.Contains(r.Failed, jobs.ErrGone.Error()) {
		t.Errorf("%+v, want a failure after which it is prepared anew", r)
	}
	for i := range 3 {
		if r := s.await("a job behind one that fails", s.send(fmt.Sprintf("%d.nc", i), true)); r.Failed != "" {
			t.Errorf("%+v", r)
		}
	}
	stop()
	fails.Store(false)
	s.worker("b", do)
	if r := s.await("the job that failed at the first worker", lost); r.Failed != "" {
		t.Errorf("%+v", r)
	}
}
