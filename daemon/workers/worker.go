package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/internal/pause"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Progress notes how much of a job is done; of a training: of a phase.
type Progress func(phase string, done, total int)

// Worker does jobs, one at a time.
type Worker struct {
	Config Config
	Name   string // unlike that of any other worker
	Folder jobs.Folder
	// Trains says that it takes trainings and no fills: one may take days, and live
	// granules would wait for it.
	Trains bool
	// Ready says that a job must not be begun now, by jobs.ErrLeased or jobs.ErrHalted,
	// before it counts as an attempt; nil: all may.
	Ready func(m jobs.Message) error
	Do    func(ctx context.Context, m jobs.Message, progress Progress) (jobs.Result, error)
	Now   func() time.Time
	Log   *slog.Logger

	client *kgo.Client
	report reporter
	queue  queue
	failed map[*kgo.Record]bool // jobs that have failed since the last pause
}

// errAgain says that an attempt at a job has failed, and is to be followed by another.
var errAgain = errors.New("the job is tried again")

// Run does jobs until ctx is cancelled: the job in hand is dropped then, and another
// worker does it. It returns nil, or a failure that needs an operator.
func (w *Worker) Run(ctx context.Context) error {
	for {
		err := w.join(ctx)
		if !errors.Is(err, errTopics) || ctx.Err() != nil {
			return err
		}
		w.Log.Warn("the worker joins its group again", "worker", w.Name, "err", err)
	}
}

// join joins the group and does jobs until ctx is cancelled. It returns errTopics after
// topics that it uses were deleted: then it must join again.
func (w *Worker) join(ctx context.Context) error {
	w.queue.records, w.failed = nil, map[*kgo.Record]bool{}
	w.queue.assigned, w.queue.done = map[partition]bool{}, map[partition]*kgo.Record{}
	group, topics := w.queues()
	client, err := w.Config.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(w.Config.Session), kgo.HeartbeatInterval(w.Config.heartbeat()), kgo.RebalanceTimeout(w.Config.Session),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { w.queue.assign(p, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { w.queue.assign(p, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { w.queue.assign(p, false) }),
	)
	if err != nil {
		return err
	}
	w.client = client
	defer client.Close()
	if err := w.ensure(ctx); err != nil {
		return err
	}
	polling, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	reporting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var reports sync.WaitGroup
	w.report.state = Report{Worker: w.Name, Started: w.Now()}
	reports.Go(func() { w.keepReporting(reporting) })
	reports.Go(func() { w.watchTopics(reporting, append(topics, w.Config.results()), gone) })
	defer func() {
		stop()
		reports.Wait()
		w.leave(ctx)
	}()
	w.Log.Info("worker ready", "worker", w.Name, "topics", topics, "group", group)
	for polling.Err() == nil {
		record := w.next(polling)
		if record == nil {
			continue
		}
		// A job in hand is not dropped with its topic: its result is looked for.
		if err := w.handle(ctx, record); isLost(err) {
			return fmt.Errorf("%w: %w", errTopics, err)
		} else if err != nil && ctx.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(polling)
}

// watchTopics calls gone after a topic was deleted.
func (w *Worker) watchTopics(ctx context.Context, topics []string, gone context.CancelCauseFunc) {
	admin := kadm.NewClient(w.client)
	ids, _ := identify(ctx, admin, topics...)
	for pause.For(ctx, w.Config.scanPause()) {
		if len(ids) < len(topics) { // the brokers did not answer
			ids, _ = identify(ctx, admin, topics...)
			continue
		}
		if lost := ids.lost(ctx, admin); len(lost) > 0 {
			gone(fmt.Errorf("%w: %v", errTopics, lost))
			return
		}
	}
}

// queues returns the topics that the worker takes jobs from, and its group.
func (w *Worker) queues() (group string, topics []string) {
	if w.Trains {
		return w.Config.trainers(), []string{w.Config.training()}
	}
	return w.Config.group(), []string{w.Config.live(), w.Config.backfill()}
}

// ensure makes the topics, and waits for brokers that are away.
func (w *Worker) ensure(ctx context.Context) error {
	for {
		_, topics := w.queues()
		err := ensureTopics(ctx, w.client, w.Config, append(topics, w.Config.results(), w.Config.dead())...)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		w.Log.Warn("the brokers cannot be used yet", "brokers", w.Config.Brokers, "err", err)
		pause.For(ctx, 2*time.Second)
	}
}

// next returns the next job, a live one before all others; nil: there was none yet.
func (w *Worker) next(ctx context.Context) *kgo.Record {
	var poll context.Context // nil: only what is there already
	if w.queue.waiting() == 0 {
		poll = ctx
	}
	const most = 64 // records at a time: they are small
	fetched := w.client.PollRecords(poll, most)
	fetched.EachError(func(topic string, _ int32, err error) {
		if ctx.Err() == nil {
			w.Log.Warn("jobs cannot be read", "topic", topic, "err", err)
			pause.For(ctx, time.Second)
		}
	})
	w.queue.add(fetched.Records())
	return w.queue.take(w.Config.live())
}

// handle does the job of a record, answers, and commits its offset.
func (w *Worker) handle(ctx context.Context, record *kgo.Record) error {
	var m jobs.Message
	id := ""
	err := json.Unmarshal(record.Value, &m)
	if err == nil {
		id, err = m.ID()
	}
	if err != nil { // not one of ours
		if err := w.bury(ctx, record, "the message is no job: "+err.Error(), 0); err != nil {
			return err
		}
		return w.commit(ctx, record)
	}
	result, done, err := w.Folder.Done(id)
	if err == nil && !done && w.Ready != nil {
		err = w.Ready(m)
	}
	if err == nil && !done {
		w.report.begin(id, m, w.Now())
		result, err = w.attempt(ctx, record, id, m)
		w.report.end(result, err)
	}
	if errors.Is(err, jobs.ErrLeased) {
		w.queue.add([]*kgo.Record{record}) // behind the others
		pause.For(ctx, w.Config.heartbeat())
		return nil
	}
	if errors.Is(err, errAgain) {
		w.postpone(ctx, record)
		return nil
	}
	if errors.Is(err, jobs.ErrHalted) {
		w.Log.Info("training rests", "dataset", m.Dataset)
		return w.commit(ctx, record)
	}
	if err != nil {
		return err
	}
	delete(w.failed, record)
	if err := w.produce(ctx, w.Config.results(), id, result); err != nil {
		return err
	}
	return w.commit(ctx, record)
}

// postpone puts a job that has failed behind the others: what it lacks, they may have.
// After a restore of the state, jobs are left in the topic whose files are gone, and
// live ones come behind them. Where the next one has failed too there is a pause: a
// shared folder that is away for a moment is no reason to give a job up.
func (w *Worker) postpone(ctx context.Context, record *kgo.Record) {
	w.queue.add([]*kgo.Record{record})
	w.failed[record] = true
	if next := w.queue.first(w.Config.live()); next != nil && w.failed[next] {
		clear(w.failed)
		pause.For(ctx, w.Config.retryPause())
	}
}

// goneTries is how often a job is tried whose files are not in the shared folder. They
// were put there before the job was sent: a folder over a network may show them late.
// More attempts are of no use: a coordinator that waits for it prepares it anew.
const goneTries = 3

// attempt tries a job once, and records its result, or that it is given up. It returns
// errAgain where it is to be tried again.
func (w *Worker) attempt(ctx context.Context, record *kgo.Record, id string, m jobs.Message) (jobs.Result, error) {
	before, err := w.Folder.Try(id, w.Name, w.Now())
	if err != nil {
		return jobs.Result{}, err
	}
	if len(before) >= w.Config.Tries {
		why := before[len(before)-1]
		w.Log.Warn("job given up", "granule", m.Granule, "revision", m.Revision, "tries", len(before), "last", why)
		if err := w.bury(ctx, record, why, len(before)); err != nil {
			return jobs.Result{}, err
		}
		return w.Folder.Finish(jobs.Result{Job: id, Failed: why, Dead: len(before), Worker: w.Name})
	}
	began := w.Now()
	result, err := w.try(ctx, m)
	result.Job, result.Worker, result.Seconds = id, w.Name, w.Now().Sub(began).Seconds()
	var unfillable *jobs.Unfillable
	switch {
	case err == nil:
		return w.Folder.Finish(result)
	case ctx.Err() != nil, errors.Is(err, jobs.ErrProgram), errors.Is(err, jobs.ErrDevice), errors.Is(err, jobs.ErrHalted), errors.Is(err, jobs.ErrLeased):
		// Not a failure of the job.
		return jobs.Result{}, errors.Join(err, w.Folder.Withdraw(id))
	case errors.As(err, &unfillable):
		return w.Folder.Finish(jobs.Result{Job: id, Failed: err.Error(), Worker: w.Name, Seconds: result.Seconds})
	}
	if errors.Is(err, jobs.ErrGone) && len(before)+1 >= min(w.Config.Tries, goneTries) {
		w.Log.Warn("job dropped, its files are gone", "granule", m.Granule, "revision", m.Revision, "err", err)
		return w.Folder.Finish(jobs.Result{Job: id, Failed: err.Error(), Gone: true, Worker: w.Name, Seconds: result.Seconds})
	}
	w.Log.Warn("job failed", "granule", m.Granule, "revision", m.Revision, "attempt", len(before)+1, "err", err)
	if err := w.Folder.Failed(id, w.Name, err.Error(), w.Now()); err != nil {
		return jobs.Result{}, err
	}
	return jobs.Result{}, errAgain
}

// try does a job once. A panic is an error.
func (w *Worker) try(ctx context.Context, m jobs.Message) (r jobs.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return w.Do(ctx, m, w.report.progress)
}

// bury sends a job to the dead letters.
func (w *Worker) bury(ctx context.Context, record *kgo.Record, why string, tries int) error {
	return w.client.ProduceSync(ctx, &kgo.Record{
		Topic: w.Config.dead(), Key: record.Key, Value: record.Value,
		Headers: []kgo.RecordHeader{
			{Key: "reason", Value: []byte(why)}, {Key: "tries", Value: []byte(strconv.Itoa(tries))}, {Key: "worker", Value: []byte(w.Name)},
		},
	}).FirstErr()
}

func (w *Worker) produce(ctx context.Context, topic, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := w.client.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte(key), Value: text}).FirstErr(); err != nil {
		return fmt.Errorf("send to %s: %w", topic, err)
	}
	return nil
}

// commit records that a job is done, and all before it are, while its partition is this
// worker's. A commit
// that fails is no loss: the next worker finds the result.
func (w *Worker) commit(ctx context.Context, record *kgo.Record) error {
	last := w.queue.finish(record)
	if last == nil {
		return nil
	}
	if err := w.client.CommitRecords(ctx, last); err != nil && ctx.Err() == nil {
		w.Log.Debug("offset not committed", "topic", record.Topic, "partition", record.Partition, "err", err)
	}
	return nil
}
