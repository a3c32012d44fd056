package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/publish/kafka/brokertest"

	"github.com/twmb/franz-go/pkg/kgo"
)

// site is a fleet on a real broker, with workers whose jobs are functions.
type site struct {
	t      *testing.T
	cfg    Config
	folder jobs.Folder
	fleet  *Fleet
	log    *bytes.Buffer
	ready  func(jobs.Message) error // of workers that train
}

// newSite shares one broker among the tests of the package, under different prefixes.
func newSite(t *testing.T, brokers []string, edit func(*Config)) *site {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Type, cfg.Brokers, cfg.Prefix = Kafka, brokers, strings.ReplaceAll(t.Name(), "/", ".")
	cfg.Session, cfg.Partitions = 2*time.Second, 16
	if edit != nil {
		edit(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, cfg: cfg, folder: jobs.Folder{Storage: jobs.Dir(t.TempDir())}, log: &bytes.Buffer{}}
	var err error
	if s.fleet, err = NewFleet(cfg, s.folder, time.Now, s.logger()); err != nil {
		t.Fatal(err)
	}
	if err := s.fleet.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = s.fleet.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		ran.Wait()
		s.fleet.Close()
	})
	return s
}

func (s *site) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s.log, nil)) }

type doing func(ctx context.Context, m jobs.Message) (jobs.Result, error)

// worker runs a worker until stop is called, which waits for its end.
func (s *site) worker(name string, do doing) (stop func()) { return s.run(name, false, do) }

// run runs a worker that fills, or one that trains.
func (s *site) run(name string, trains bool, do doing) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &Worker{
		Config: s.cfg, Name: name, Trains: trains, Folder: s.folder, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Do: func(ctx context.Context, m jobs.Message, _ Progress) (jobs.Result, error) { return do(ctx, m) },
	}
	if trains {
		w.Ready = s.ready
	}
	var ran sync.WaitGroup
	ran.Go(func() {
		if err := w.Run(ctx); err != nil {
			s.t.Errorf("worker %s: %v", name, err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); ran.Wait() })
	s.t.Cleanup(stop)
	return stop
}

// send sends a job and returns where its result will be.
func (s *site) send(granule string, live bool) <-chan jobs.Result {
	s.t.Helper()
	return s.sendJob(jobs.Message{Dataset: "sea", Granule: granule}, live)
}

// train sends a training.
func (s *site) train(granule string) <-chan jobs.Result {
	s.t.Helper()
	return s.sendJob(jobs.Message{Dataset: "sea", Granule: granule, Training: &jobs.Training{}}, false)
}

func (s *site) sendJob(m jobs.Message, live bool) <-chan jobs.Result {
	s.t.Helper()
	got := make(chan jobs.Result, 2)
	if err := s.fleet.Send(s.t.Context(), m, live, func(r jobs.Result) { got <- r }); err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s *site) await(what string, got <-chan jobs.Result) jobs.Result {
	s.t.Helper()
	select {
	case r := <-got:
		return r
	case <-time.After(60 * time.Second):
		s.t.Fatalf("no result of %s\n%s", what, s.log)
	}
	return jobs.Result{}
}

func fine(context.Context, jobs.Message) (jobs.Result, error) { return jobs.Result{}, nil }

func TestBrokersThatAreAwayAreNamed(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Type, cfg.Prefix, cfg.Brokers = Kafka, "away", []string{"127.0.0.1:1"}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if found, err := cfg.Try(ctx); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("Try() = %q, %v", found, err)
	}
}

func TestWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for sessions to end")
	}
	t.Parallel()
	brokers := brokertest.Start(t, brokertest.Options{}).Addrs()
	for name, test := range map[string]func(*testing.T, []string){
		"LongJobs": longJobs, "Poison": poison, "Aside": failingAside, "LiveFirst": liveFirst, "Dropped": dropped, "Twice": twice, "Programs": programs,
		"Turns": turns, "Lost": lostAnnouncement, "Deleted": deletedTopics, "Truncated": truncatedTopic, "State": state, "Trainings": trainings, "Idle": idleTrainer,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, brokers) })
	}
}

// A job that takes three sessions is done once, though another worker stands by.
func longJobs(t *testing.T, brokers []string) {
	s := newSite(t, brokers, nil)
	var begun atomic.Int32
	do := func(ctx context.Context, _ jobs.Message) (jobs.Result, error) {
		begun.Add(1)
		select {
		case <-time.After(3 * s.cfg.Session):
			return jobs.Result{}, nil
		case <-ctx.Done():
			return jobs.Result{}, ctx.Err()
		}
	}
	s.worker("a", do)
	s.worker("b", do)
	if r := s.await("the long job", s.send("long.nc", true)); r.Failed != "" || r.Seconds < 5 {
		t.Errorf("%+v", r)
	}
	if n := begun.Load(); n != 1 {
		t.Errorf("the job was begun %d times: its lease was lost", n)
	}
}

// A job that fails, panics, or ends its workers is given up after so many tries, with
// the reason, and those behind it are done.
func poison(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Partitions, c.Tries = 1, 3 })
	killer := jobs.Message{Dataset: "sea", Granule: "kills.nc"}
	id, _ := killer.ID()
	for range s.cfg.Tries { // three workers were killed by it
		if _, err := s.folder.Try(id, "killed", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	var tried sync.Map
	s.worker("a", func(_ context.Context, m jobs.Message) (jobs.Result, error) {
		n, _ := tried.LoadOrStore(m.Granule, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		switch m.Granule {
		case "fails.nc":
			return jobs.Result{}, errors.New("the disk is full")
		case "panics.nc":
			panic("index out of range")
		case "unfillable.nc":
			return jobs.Result{}, &jobs.Unfillable{Err: errors.New("the grid is another")}
		}
		return jobs.Result{}, nil
	})
	for _, tt := range []struct {
		granule, why string
		tries, dead  int
	}{
		{"fails.nc", "the disk is full", 3, 3},
		{"panics.nc", "index out of range", 3, 3},
		{"unfillable.nc", "the grid is another", 1, 0},
		{"kills.nc", "killed", 0, 3},
		{"good.nc", "", 1, 0},
	} {
		r := s.await(tt.granule, s.send(tt.granule, true))
		n := 0
		if counted, ok := tried.Load(tt.granule); ok {
			n = int(counted.(*atomic.Int32).Load())
		}
		if r.Dead != tt.dead || n != tt.tries || !strings.Contains(r.Failed, tt.why) || (r.Failed == "") != (tt.why == "") {
			t.Errorf("%s: %d tries, dead after %d: %q", tt.granule, n, r.Dead, r.Failed)
		}
	}
	letters := s.read(s.cfg.dead(), 3)
	for i, want := range []string{"the disk is full", "index out of range", "killed"} {
		reason := ""
		for _, h := range letters[i].Headers {
			if h.Key == "reason" {
				reason = string(h.Value)
			}
		}
		if !strings.Contains(reason, want) {
			t.Errorf("dead letter %d has the reason %q", i, reason)
		}
	}
	if got := s.fleet.State(); got.Dead != 3 || got.Failed != 4 || got.Done != 1 {
		t.Errorf("the fleet counts %+v", got)
	}
}

// read returns the first n records of a topic.
func (s *site) read(topic string, n int) []*kgo.Record {
	s.t.Helper()
	client, err := s.cfg.client(kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	var all []*kgo.Record
	for len(all) < n {
		all = append(all, client.PollFetches(ctx).Records()...)
		if ctx.Err() != nil {
			s.t.Fatalf("%d records in %s, want %d", len(all), topic, n)
		}
	}
	return all
}

func liveFirst(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Partitions = 2 })
	var order []string
	begun, goOn := make(chan struct{}), make(chan struct{})
	var results []<-chan jobs.Result
	for i := range 6 {
		results = append(results, s.send(fmt.Sprintf("old%d.nc", i), false))
	}
	s.worker("a", func(_ context.Context, m jobs.Message) (jobs.Result, error) {
		if order = append(order, m.Granule); len(order) == 1 {
			close(begun)
			<-goOn
		}
		return jobs.Result{}, nil
	})
	<-begun
	results = append(results, s.send("today.nc", true))
	time.Sleep(time.Second) // until the worker has fetched it beside its job
	close(goOn)
	for i, r := range results {
		s.await(fmt.Sprint(i), r)
	}
	if order[1] != "today.nc" {
		t.Errorf("the order is %v, want today's granule after the one in hand", order)
	}
}

// The job of a worker that stops is done by another, and does not count as a try.
func dropped(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Tries = 1 })
	begun := make(chan struct{})
	stop := s.worker("a", func(ctx context.Context, _ jobs.Message) (jobs.Result, error) {
		close(begun)
		<-ctx.Done()
		return jobs.Result{}, ctx.Err()
	})
	got := s.send("day.nc", true)
	<-begun
	stop()
	s.worker("b", fine)
	if r := s.await("the dropped job", got); r.Worker != "b" || r.Failed != "" {
		t.Errorf("%+v", r)
	}
}

// A job that is sent again after it was done is answered without being done again,
// also by a worker that gets it from the queue.
func twice(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Partitions = 1 })
	var n atomic.Int32
	s.worker("a", func(context.Context, jobs.Message) (jobs.Result, error) {
		n.Add(1)
		return jobs.Result{SHA256: "of the first"}, nil
	})
	first := s.await("day", s.send("day.nc", true))
	again := s.await("day again", s.send("day.nc", true))
	m := jobs.Message{Dataset: "sea", Granule: "day.nc"}
	if err := s.fleet.client.ProduceSync(t.Context(), jobRecord(t, s.cfg, m)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s.await("one behind it", s.send("next.nc", true))
	if n.Load() != 2 || first.SHA256 != again.SHA256 {
		t.Errorf("%d jobs were done, %+v, %+v", n.Load(), first, again)
	}
}

// A worker of another version leaves a job alone, and ends.
func programs(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Tries = 1 })
	w := &Worker{
		Config: s.cfg, Name: "old", Folder: s.folder, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Do: func(context.Context, jobs.Message, Progress) (jobs.Result, error) {
			return jobs.Result{}, jobs.ErrProgram
		},
	}
	got := s.send("day.nc", true)
	if err := w.Run(t.Context()); !errors.Is(err, jobs.ErrProgram) {
		t.Errorf("Run() = %v", err)
	}
	s.worker("new", fine)
	if r := s.await("the job", got); r.Worker != "new" {
		t.Errorf("%+v", r)
	}
}

// A result that nobody announced is found in the folder.
func lostAnnouncement(t *testing.T, brokers []string) {
	s := newSite(t, brokers, nil)
	m := jobs.Message{Dataset: "sea", Granule: "day.nc"}
	id, _ := m.ID()
	got := s.send("day.nc", true)
	if _, err := s.folder.Finish(jobs.Result{Job: id, SHA256: "x"}); err != nil {
		t.Fatal(err)
	}
	s.fleet.mu.Lock()
	s.fleet.waiting[id].looked = time.Time{} // else it would be looked for in 20 seconds
	s.fleet.mu.Unlock()
	if r := s.await("the job", got); r.SHA256 != "x" {
		t.Errorf("%+v", r)
	}
}

// Topics are deleted while a job is in hand and others wait in them. All are done, and
// so is one that is sent afterwards; nobody is started again.
func deletedTopics(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Partitions = 1 })
	begun, release := make(chan string, 10), make(chan struct{})
	s.worker("a", func(_ context.Context, m jobs.Message) (jobs.Result, error) {
		begun <- m.Granule
		<-release
		return jobs.Result{SHA256: m.Granule}, nil
	})
	names := []string{"1.nc", "2.nc", "3.nc"}
	all := make(map[string]<-chan jobs.Result, len(names))
	for _, name := range names {
		all[name] = s.send(name, true)
	}
	<-begun
	if _, err := s.fleet.admin.DeleteTopics(t.Context(), s.cfg.live(), s.cfg.results()); err != nil {
		t.Fatal(err)
	}
	close(release)
	for _, name := range names {
		if r := s.await(name, all[name]); r.SHA256 != name {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := s.await("a later job", s.send("4.nc", true)); r.SHA256 != "4.nc" {
		t.Errorf("%+v", r)
	}
}

// What is in a topic of jobs is deleted before any worker has seen it. It is sent again.
func truncatedTopic(t *testing.T, brokers []string) {
	s := newSite(t, brokers, nil)
	got := s.send("day.nc", true)
	ends, err := s.fleet.admin.ListEndOffsets(t.Context(), s.cfg.live())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.fleet.admin.DeleteRecords(t.Context(), ends.Offsets()); err != nil {
		t.Fatal(err)
	}
	s.worker("a", fine)
	s.await("the job", got)
}

// The fleet tells who is at what, and how much waits.
func state(t *testing.T, brokers []string) {
	s := newSite(t, brokers, func(c *Config) { c.Partitions = 1 })
	goOn := make(chan struct{})
	stop := s.worker("a", func(context.Context, jobs.Message) (jobs.Result, error) { <-goOn; return jobs.Result{}, nil })
	first := s.send("first.nc", false)
	second := s.send("second.nc", false)
	s.until("the worker shows its job, and two jobs wait", func(g State) bool {
		s.fleet.count(t.Context())
		return len(g.Workers) == 1 && g.Workers[0].Granule == "first.nc" && g.Lag.Backfill == 2 && g.UnderWay == 2
	})
	if found, err := s.cfg.Try(t.Context()); err != nil || !strings.Contains(found, "1 workers") || !strings.Contains(found, "at most 1") {
		t.Errorf("Try() = %q, %v", found, err)
	}
	close(goOn)
	s.await("first", first)
	s.await("second", second)
	s.until("nothing waits", func(g State) bool {
		s.fleet.count(t.Context())
		return g.Lag.Backfill == 0 && g.UnderWay == 0 && g.Done == 2 && len(g.Workers) == 1 && g.Workers[0].Done == 2
	})
	stop()
	s.until("the worker has left", func(g State) bool { return len(g.Workers) == 0 })
}

func (s *site) until(what string, is func(State) bool) {
	s.t.Helper()
	for range 200 {
		if is(s.fleet.State()) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatalf("%s: still %+v", what, s.fleet.State())
}
