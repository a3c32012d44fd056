package workers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/daemon/jobs"
)

// Trainings go to workers that train, and fills to those that fill. One that another
// worker is at waits behind the others, and one that has to rest is neither answered nor
// handed out again.
func trainings(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Train, c.Partitions, c.Tries = true, 1, 1 })
	var looked, rested atomic.Int32
	train := func(_ context.Context, m jobs.Message) (jobs.Result, error) {
		switch {
		case m.Training == nil:
			t.Errorf("%s, a fill, came to a worker that trains", m.Granule)
		case m.Granule == "elsewhere" && looked.Add(1) < 3:
			return jobs.Result{}, jobs.ErrLeased
		case m.Granule == "rests":
			rested.Add(1)
			return jobs.Result{}, jobs.ErrHalted
		}
		return jobs.Result{Trained: &jobs.Trained{Version: m.Granule}}, nil
	}
	// An attempt of another worker is counted, and it is at it: nobody gives it up.
	id, _ := jobs.Message{Dataset: "sea", Granule: "held", Training: &jobs.Training{}}.ID()
	if _, err := s.folder.Try(id, "other", time.Now()); err != nil {
		t.Fatal(err)
	}
	var held atomic.Int32
	s.ready = func(m jobs.Message) error {
		if m.Granule == "held" && held.Add(1) < 3 {
			return jobs.ErrLeased
		}
		if m.Granule == "held" { // it was withdrawn there
			return s.folder.Withdraw(id)
		}
		return nil
	}
	stop := s.run("gpu", true, train)
	if r := s.await("a training that another was at", s.train("held")); r.Dead > 0 || r.Failed != "" {
		t.Errorf("%+v", r)
	}
	s.worker("cpu", func(_ context.Context, m jobs.Message) (jobs.Result, error) {
		if m.Training != nil {
			t.Error("a training came to a worker that fills")
		}
		return jobs.Result{}, nil
	})
	elsewhere, rests, next := s.train("elsewhere"), s.train("rests"), s.train("next")
	if r := s.await("the next training", next); r.Trained == nil || r.Worker != "gpu" {
		t.Errorf("%+v", r)
	}
	if r := s.await("the one that another worker was at", elsewhere); r.Trained == nil || r.Failed != "" || looked.Load() != 3 {
		t.Errorf("%+v after %d looks", r, looked.Load())
	}
	if r := s.await("a fill", s.send("day.nc", true)); r.Worker != "cpu" {
		t.Errorf("%+v", r)
	}
	stop()
	s.run("gpu-2", true, train)
	s.await("one more", s.train("one more"))
	if rested.Load() != 1 || len(rests) > 0 {
		t.Errorf("the training that rests was handed out %d times and answered %d times", rested.Load(), len(rests))
	}
}

// A training goes to the worker that has none, whichever partitions it has.
func idleTrainer(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Train, c.Partitions = true, 2 })
	goOn, begun := make(chan struct{}), make(chan string, 4)
	train := func(name string) doing {
		return func(_ context.Context, m jobs.Message) (jobs.Result, error) {
			begun <- name
			<-goOn
			return jobs.Result{}, nil
		}
	}
	s.run("a", true, train("a"))
	s.run("b", true, train("b"))
	s.until("each has its partition", func(g State) bool {
		return len(g.Workers) == 2 && len(g.Workers[0].Queues) == 1 && len(g.Workers[1].Queues) == 1
	})
	first := s.train("first")
	busy := <-begun
	second := s.train("second")
	select {
	case other := <-begun:
		if other == busy {
			t.Errorf("%s has two trainings", busy)
		}
	case <-time.After(2 * time.Minute):
		t.Errorf("a training waits for %s, and the other worker has nothing to do", busy)
	}
	close(goOn)
	s.await("first", first)
	s.await("second", second)
}
