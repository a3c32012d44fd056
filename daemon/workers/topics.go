package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"lacuna/internal/pause"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Retention of topics. Results lie in the shared folder too, and jobs that wait are
// sent again by the coordinator, so that none is lost with an old message.
const (
	keepJobs    = 7 * 24 * time.Hour
	keepResults = 24 * time.Hour
	keepDead    = 90 * 24 * time.Hour
)

// ensureTopics makes the topics that are not there, of those that a role uses.
func ensureTopics(ctx context.Context, client *kgo.Client, c Config, uses ...string) error {
	admin := kadm.NewClient(client)
	for _, t := range []struct {
		name       string
		partitions int
		keep       time.Duration
	}{
		{c.live(), c.Partitions, keepJobs},
		{c.backfill(), c.Partitions, keepJobs},
		{c.training(), c.Partitions, keepJobs},
		{c.results(), 1, keepResults},
		{c.dead(), 1, keepDead},
		{c.turn(), 1, keepResults},
	} {
		if !slices.Contains(uses, t.name) {
			continue
		}
		known, err := admin.ListTopics(ctx, t.name)
		if err == nil && known.Has(t.name) {
			continue
		}
		millis := strconv.FormatInt(t.keep.Milliseconds(), 10)
		_, err = admin.CreateTopic(ctx, int32(t.partitions), int16(c.Replication), map[string]*string{"retention.ms": &millis}, t.name)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("make the topic %s: %w", t.name, err)
		}
		if err := awaitTopic(ctx, admin, t.name); err != nil {
			return err
		}
	}
	return nil
}

// awaitTopic waits until a new topic has leaders.
func awaitTopic(ctx context.Context, admin *kadm.Client, name string) error {
	for range 100 {
		topics, err := admin.ListTopics(ctx, name)
		if err == nil && topics.Has(name) && topics[name].Err == nil {
			return nil
		}
		if !pause.For(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("the topic %s was made and has no leader yet", name)
}

// lag returns the jobs of a topic that no worker has finished.
func lag(ctx context.Context, admin *kadm.Client, c Config) (live, backfill int64, err error) {
	groups, err := admin.Lag(ctx, c.group())
	if err != nil {
		return 0, 0, err
	}
	byTopic := func(topic string) (n int64) {
		for _, g := range groups {
			for _, p := range g.Lag[topic] {
				n += max(p.Lag, 0)
			}
		}
		return n
	}
	return byTopic(c.live()), byTopic(c.backfill()), nil
}

// Try asks the brokers who is there, and returns that in words.
func (c Config) Try(ctx context.Context) (string, error) {
	client, err := c.client(kgo.RetryTimeout(10 * time.Second))
	if err != nil {
		return "", err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx, c.live())
	if err != nil {
		return "", fmt.Errorf("ask the brokers %v: %w", c.Brokers, err)
	}
	if !topics.Has(c.live()) {
		return "the brokers answer; the first run makes the topics", nil
	}
	groups, err := admin.DescribeGroups(ctx, c.group())
	if err == nil {
		err = groups.Error()
	}
	if err != nil {
		return "", fmt.Errorf("ask for the group %s: %w", c.group(), err)
	}
	return fmt.Sprintf("the brokers answer; %d workers in the group %s, at most %d at a time", len(groups[c.group()].Members), c.group(), len(topics[c.live()].Partitions)), nil
}

// TryBucket writes to the bucket that is shared, and returns in words what it is good
// for.
func (c Config) TryBucket() (found string, err error) {
	folder, err := c.Folder()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("check/%d", time.Now().UnixNano())
	for _, want := range []bool{true, false} {
		created, err := folder.Create(key, []byte("check"))
		if err == nil && created != want {
			err = fmt.Errorf("%s replaces what is there, though it was asked not to (If-None-Match): use another host, or workers.shared_dir", c.S3.Endpoint)
		}
		if err != nil {
			return "", errors.Join(err, folder.Remove(key))
		}
	}
	return fmt.Sprintf("%s/%s can be written to, and knows conditional writes", c.S3.Bucket, c.S3.Prefix), folder.Remove(key)
}
