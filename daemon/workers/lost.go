package workers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// errTopics says that topics were deleted since a client began to use them. A client
// keeps to the topic that it knew, also after another was made with its name.
var errTopics = errors.New("topics were deleted")

// used are topics that a client uses, with the ids that they had when it began.
type used map[string]kadm.TopicID

// identify returns topics with their ids.
func identify(ctx context.Context, admin *kadm.Client, topics ...string) (used, error) {
	known, err := admin.ListTopics(ctx, topics...)
	if err != nil {
		return nil, err
	}
	ids := used{}
	for _, t := range known {
		if t.Err == nil {
			ids[t.Topic] = t.ID
		}
	}
	return ids, nil
}

// lost returns the topics that are not there any more, or are others with the name.
// Brokers that cannot say so have lost nothing.
func (u used) lost(ctx context.Context, admin *kadm.Client) (topics []string) {
	known, err := admin.ListTopics(ctx, slices.Sorted(maps.Keys(u))...)
	if err != nil {
		return nil
	}
	for _, t := range known.Sorted() {
		if errors.Is(t.Err, kerr.UnknownTopicOrPartition) || t.Err == nil && t.ID != u[t.Topic] {
			topics = append(topics, t.Topic)
		}
	}
	return topics
}

// isLost reports whether a client could not send because a topic was deleted.
func isLost(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// keepTopics makes topics again that were deleted, and sends the jobs again that were
// in them, or in a part of a topic that was deleted.
func (f *Fleet) keepTopics(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	f.mu.Lock()
	topics := f.topics
	f.mu.Unlock()
	lost := topics.lost(ctx, f.admin)
	if len(lost) == 0 {
		if n := f.sendAgain(ctx, f.truncated(ctx)); n > 0 {
			f.log.Warn("jobs were deleted from their topics, and have been sent again", "jobs", n)
		}
		return
	}
	f.client.PurgeTopicsFromClient(lost...)
	if err := f.Prepare(ctx); err != nil {
		f.log.Warn("topics were deleted, and cannot be made again yet", "topics", lost, "err", err)
		return
	}
	if slices.Contains(lost, f.cfg.results()) {
		f.client.AddConsumeTopics(f.cfg.results())
	}
	f.mu.Lock()
	again := map[string]*waiting{}
	for id, job := range f.waiting {
		job.looked = time.Time{} // its result may have been announced on a topic that was lost
		if slices.Contains(lost, job.topic) {
			again[id] = job
		}
	}
	f.mu.Unlock()
	n := f.sendAgain(ctx, again)
	f.log.Warn("topics were deleted, and have been made again", "topics", lost, "jobs_sent_again", n)
}

// truncated returns the jobs under way whose messages are not in their topics any more:
// they were deleted, by hand or because they were old.
func (f *Fleet) truncated(ctx context.Context) map[string]*waiting {
	f.mu.Lock()
	topics := map[string]bool{}
	for _, job := range f.waiting {
		topics[job.topic] = true
	}
	f.mu.Unlock()
	if len(topics) == 0 {
		return nil
	}
	begins, err := f.admin.ListStartOffsets(ctx, slices.Sorted(maps.Keys(topics))...)
	if err != nil {
		return nil // it is looked at again
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	again := map[string]*waiting{}
	for id, job := range f.waiting {
		if begin, known := begins.Lookup(job.topic, job.partition); known && begin.Err == nil && job.sent && begin.Offset > job.offset {
			again[id] = job
		}
	}
	return again
}

// sendAgain sends jobs again. One that cannot be sent is sent by the next call: its
// topic counts as lost until then.
func (f *Fleet) sendAgain(ctx context.Context, again map[string]*waiting) (n int) {
	for _, id := range slices.Sorted(maps.Keys(again)) {
		job := again[id]
		if err := f.produce(ctx, id, job); err != nil {
			f.log.Warn("job not sent again", "topic", job.topic, "err", err)
			f.mu.Lock()
			f.topics[job.topic] = kadm.TopicID{}
			f.mu.Unlock()
			return n
		}
		n++
	}
	return n
}
