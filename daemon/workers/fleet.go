package workers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"lacuna/daemon/jobs"

	"github.com/klauspost/compress/s2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Fleet is the coordinator's side: it sends jobs and hands their results on.
type Fleet struct {
	cfg    Config
	folder jobs.Folder
	client *kgo.Client
	admin  *kadm.Client
	now    func() time.Time
	log    *slog.Logger

	mu      sync.Mutex // guards the rest
	waiting map[string]*waiting
	workers map[string]heard
	failed  int // jobs that were not done
	dead    int // those of them that were given up
	done    int
	lag     Lag
	trained int                  // trainings that were sent
	given   map[string]time.Time // when a worker was last given one
	topics  used
}

// waiting is a job under way.
type waiting struct {
	answer func(jobs.Result)
	looked time.Time // when its result was last looked for
	trains bool      // it is a training
	topic  string    // that it is sent to
	text   []byte    // its message, compressed: it is sent again where its topic is lost

	sent      bool // it is in the topic, at this place
	partition int32
	offset    int64
}

// heard is the last report of a worker and when it came.
type heard struct {
	Report
	at time.Time
}

// Lag counts the jobs that wait for a worker.
type Lag struct {
	Live, Backfill int64
	At             time.Time // when they were counted; zero: never
}

// NewFleet returns the fleet of a configuration. Run must be called.
func NewFleet(cfg Config, folder jobs.Folder, now func() time.Time, log *slog.Logger) (*Fleet, error) {
	client, err := cfg.client(
		kgo.ConsumeTopics(cfg.results()), kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()), kgo.FetchMaxWait(500*time.Millisecond),
		// One after the other over the partitions: keys would not spread evenly.
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProducerLinger(0),
		// Brokers that are away longer are an error of this granule, which is tried again.
		kgo.RecordDeliveryTimeout(sendTimeout),
	)
	if err != nil {
		return nil, err
	}
	return &Fleet{
		cfg: cfg, folder: folder, client: client, admin: kadm.NewClient(client), now: now, log: log.With("component", "workers"),
		waiting: map[string]*waiting{}, workers: map[string]heard{}, given: map[string]time.Time{},
	}, nil
}

// Prepare makes the topics.
func (f *Fleet) Prepare(ctx context.Context) error {
	topics := []string{f.cfg.live(), f.cfg.backfill(), f.cfg.results()}
	if f.cfg.Train {
		topics = append(topics, f.cfg.training())
	}
	if err := ensureTopics(ctx, f.client, f.cfg, topics...); err != nil {
		return err
	}
	ids, err := identify(ctx, f.admin, topics...)
	if err != nil {
		return fmt.Errorf("look at the topics: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics = ids
	return nil
}

// Close ends the connections.
func (f *Fleet) Close() { f.client.Close() }

// Send puts a job into the queue of its lane, or of trainings. answer is called once with its result,
// from another goroutine; at once where the job was done before.
func (f *Fleet) Send(ctx context.Context, m jobs.Message, live bool, answer func(jobs.Result)) error {
	id, err := m.ID()
	if err != nil {
		return err
	}
	result, done, err := f.folder.Done(id)
	if err != nil {
		return err
	}
	if done {
		answer(result)
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	job := &waiting{answer: answer, looked: f.now(), trains: m.Training != nil, topic: f.cfg.backfill(), text: bytes.Clone(s2.Encode(nil, text))}
	switch {
	case job.trains:
		job.topic = f.cfg.training()
	case live:
		job.topic = f.cfg.live()
	}
	f.mu.Lock()
	f.waiting[id] = job
	f.mu.Unlock()
	if err := f.produce(ctx, id, job); err != nil {
		f.mu.Lock()
		delete(f.waiting, id)
		f.mu.Unlock()
		return fmt.Errorf("send to %s: %w", job.topic, err)
	}
	return nil
}

// produce sends a job to its topic.
func (f *Fleet) produce(ctx context.Context, id string, job *waiting) error {
	text, err := s2.Decode(nil, job.text)
	if err != nil {
		return err
	}
	record := &kgo.Record{Topic: job.topic, Key: []byte(id), Value: text}
	if job.trains {
		err = f.sendTraining(ctx, record)
	} else {
		err = f.client.ProduceSync(ctx, record).FirstErr()
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	job.sent, job.partition, job.offset = true, record.Partition, record.Offset
	return nil
}

// sendTraining sends a training to the partition of a worker that has none in hand: with
// fills the partitions even out by themselves, and behind a training one may wait for
// days.
func (f *Fleet) sendTraining(ctx context.Context, record *kgo.Record) error {
	client, err := f.cfg.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(sendTimeout))
	if err != nil {
		return err
	}
	defer client.Close()
	record.Partition = f.idleQueue()
	return client.ProduceSync(ctx, record).FirstErr()
}

// idleQueue returns a partition of a worker that trains and has nothing to do; where all
// have, the next one.
func (f *Fleet) idleQueue() int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, h := range f.workers {
		if len(h.Queues) > 0 && h.Job == "" && f.now().Sub(f.given[name]) > reportsMissed*reportPause {
			f.given[name] = f.now()
			return h.Queues[0]
		}
	}
	f.trained++
	return int32(f.trained % f.cfg.Partitions)
}

const (
	sendTimeout = 30 * time.Second // rides out the restart of a broker
	scanMost    = 256              // jobs that are looked for at a time
	lagPause    = 10 * time.Second
	sweepPause  = time.Hour
)

// Run hands results on until ctx is cancelled.
func (f *Fleet) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { f.every(ctx, f.cfg.scanPause(), f.scan) })
	beside.Go(func() { f.every(ctx, f.cfg.scanPause(), f.keepTopics) })
	beside.Go(func() { f.every(ctx, lagPause, f.count) })
	for ctx.Err() == nil {
		fetched := f.client.PollFetches(ctx)
		fetched.EachError(func(topic string, _ int32, err error) {
			if ctx.Err() == nil {
				f.log.Warn("results cannot be read", "topic", topic, "err", err)
			}
		})
		fetched.EachRecord(f.hear)
	}
	return nil
}

func (f *Fleet) every(ctx context.Context, pause time.Duration, do func(context.Context)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// hear takes a record of the results: a report, or the announcement of a result,
// which is read from the folder.
func (f *Fleet) hear(r *kgo.Record) {
	if string(r.Key) != "worker" {
		f.mu.Lock()
		_, ours := f.waiting[string(r.Key)]
		f.mu.Unlock()
		if ours {
			f.hand(string(r.Key))
		}
		return
	}
	var told Report
	if json.Unmarshal(r.Value, &told) != nil || told.Worker == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if told.Left {
		delete(f.workers, told.Worker)
		return
	}
	f.workers[told.Worker] = heard{Report: told, at: f.now()}
}

// hand hands the result of a job on, where it is in the folder.
func (f *Fleet) hand(id string) {
	result, done, err := f.folder.Done(id)
	if err != nil {
		f.log.Warn("result cannot be read", "err", err)
	}
	if !done {
		return
	}
	f.mu.Lock()
	job := f.waiting[id]
	delete(f.waiting, id)
	if job != nil {
		if result.Failed == "" {
			f.done++
		} else {
			f.failed++
		}
		if result.Dead > 0 {
			f.dead++
		}
	}
	f.mu.Unlock()
	if job != nil {
		job.answer(result)
	}
}

// scan looks for results that were not announced, or before anybody listened: for a few
// at a time, because storage is asked for each.
func (f *Fleet) scan(context.Context) {
	now := f.now()
	f.mu.Lock()
	var ids []string
	for id, job := range f.waiting {
		if len(ids) < scanMost && now.Sub(job.looked).Abs() >= f.cfg.lookPause() {
			job.looked = now
			ids = append(ids, id)
		}
	}
	f.mu.Unlock()
	for _, id := range ids {
		f.hand(id)
	}
}

// count counts the jobs that wait.
func (f *Fleet) count(ctx context.Context) {
	live, backfill, err := lag(ctx, f.admin, f.cfg)
	if err != nil {
		f.log.Debug("jobs that wait cannot be counted", "err", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lag = Lag{Live: live, Backfill: backfill, At: f.now()}
}

// Sweep keeps the shared folder small until ctx is cancelled, from the start on: a service
// may be restarted more often than it sweeps.
func (f *Fleet) Sweep(ctx context.Context, datasets []string) error {
	sweep := func(context.Context) {
		if n, err := f.folder.Sweep(datasets, f.now(), f.cfg.Keep); err != nil {
			f.log.Warn("shared folder not swept", "err", err)
		} else if n > 0 {
			f.log.Info("shared folder swept", "files", n)
		}
	}
	sweep(ctx)
	f.every(ctx, sweepPause, sweep)
	return nil
}

// State is the state of the fleet for people.
type State struct {
	Workers            []Report
	UnderWay           int // jobs that were sent and have no result
	Trainings          int // those of them that are trainings
	Lag                Lag
	Done, Failed, Dead int // jobs since the start
}

// State returns the state of the fleet. Workers that have been silent for long are
// left out.
func (f *Fleet) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := State{UnderWay: len(f.waiting), Lag: f.lag, Done: f.done, Failed: f.failed, Dead: f.dead}
	for _, job := range f.waiting {
		if job.trains {
			s.Trainings++
		}
	}
	for name, h := range f.workers {
		if f.now().Sub(h.at) > reportsMissed*reportPause {
			delete(f.workers, name)
			continue
		}
		s.Workers = append(s.Workers, h.Report)
	}
	slices.SortFunc(s.Workers, func(a, b Report) int { return cmp.Compare(a.Worker, b.Worker) })
	return s
}

// Progress returns where the worker is that has a job in hand; false: none has said so.
func (f *Fleet) Progress(job string) (phase string, step, steps int, ok bool) {
	for _, w := range f.State().Workers {
		if w.Job == job {
			return w.Phase, w.Step, w.Steps, true
		}
	}
	return "", 0, 0, false
}
