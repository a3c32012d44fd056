package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"lacuna/internal/pause"
)

// frameBytes is the most that key, headers and the frame of a record batch add
// to the value of a message: names of files and granules are bounded by file
// systems at 255 bytes, and a part repeats four of them.
const frameBytes = 2048

// topic is a topic of the sink on the brokers.
type topic struct {
	name       string
	partitions int
}

// ensureTopics makes the missing topics, where that is allowed, and checks that
// both take our messages.
func ensureTopics(ctx context.Context, c *Cluster, cfg Config) (events, data topic, err error) {
	events.name, data.name = EventsTopic(cfg.Prefix), DataTopic(cfg.Prefix)
	millis := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	settings := map[*topic][]kafkago.ConfigEntry{
		&events: {
			{ConfigName: "cleanup.policy", ConfigValue: "compact"},
			{ConfigName: "delete.retention.ms", ConfigValue: millis(cfg.Topics.Tombstones)},
		},
		&data: {
			{ConfigName: "cleanup.policy", ConfigValue: "delete"},
			{ConfigName: "retention.ms", ConfigValue: millis(cfg.Topics.DataRetention)},
		},
	}
	for _, t := range []*topic{&events, &data} {
		var partitions []kafkago.Partition
		err := ErrGone
		if !missing(ctx, c, t.name) {
			partitions, err = c.Partitions(ctx, t.name)
		}
		if errors.Is(err, ErrGone) {
			if !cfg.Topics.Create {
				return topic{}, topic{}, fmt.Errorf("topic %s does not exist: create it, or set topics.create", t.name)
			}
			partitions, err = createTopic(ctx, c, cfg, kafkago.TopicConfig{Topic: t.name, ConfigEntries: settings[t]})
		}
		if err != nil {
			return topic{}, topic{}, err
		}
		t.partitions = len(partitions)
	}
	if err := checkTopic(ctx, c, events.name, frameBytes, "compact"); err != nil {
		return topic{}, topic{}, err
	}
	return events, data, checkTopic(ctx, c, data.name, cfg.PartBytes+frameBytes, "delete")
}

// missing reports whether the brokers do not have a topic. Who asks for the partitions
// of one that is not there has it made, where brokers create topics by themselves, as
// they do unless told otherwise: with settings that are not ours.
func missing(ctx context.Context, c *Cluster, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := c.client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{name}})
	if err != nil || len(answer.Topics) != 1 {
		return false // asking for its partitions says what is wrong
	}
	return errors.Is(answer.Topics[0].Error, kafkago.UnknownTopicOrPartition)
}

// createTopic makes a topic and waits until it has leaders.
func createTopic(ctx context.Context, c *Cluster, cfg Config, t kafkago.TopicConfig) ([]kafkago.Partition, error) {
	t.NumPartitions, t.ReplicationFactor = cfg.Topics.Partitions, cfg.Topics.Replication
	answer, err := c.client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{t}})
	if err == nil {
		err = answer.Errors[t.Topic]
	}
	if err != nil && !errors.Is(err, kafkago.TopicAlreadyExists) {
		return nil, fmt.Errorf("create topic %s with %d partitions: %w", t.Topic, t.NumPartitions, c.explain(err))
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		partitions, err := c.Partitions(ctx, t.Topic)
		if err == nil {
			return partitions, nil
		}
		if !pause.For(ctx, 50*time.Millisecond) {
			return nil, fmt.Errorf("wait for topic %s, which was just created: %w", t.Topic, err)
		}
	}
}

// checkTopic returns an error with the remedy where a topic cannot take
// messages of a size, or has the wrong cleanup policy.
func checkTopic(ctx context.Context, c *Cluster, name string, bytes int, policy string) error {
	answer, err := c.client.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
		ResourceType: kafkago.ResourceTypeTopic, ResourceName: name, ConfigNames: []string{"max.message.bytes", "cleanup.policy"},
	}}})
	if err != nil {
		return fmt.Errorf("ask for the settings of topic %s: %w", name, err)
	}
	for _, r := range answer.Resources {
		if errors.Is(r.Error, kafkago.TopicAuthorizationFailed) {
			return nil // no right to read settings: sending will show
		}
		if r.Error != nil {
			return fmt.Errorf("ask for the settings of topic %s: %w", name, r.Error)
		}
		for _, e := range r.ConfigEntries {
			switch e.ConfigName {
			case "max.message.bytes":
				if limit, err := strconv.Atoi(e.ConfigValue); err == nil && limit < bytes {
					return fmt.Errorf("topic %s takes messages of at most %d bytes, ours have up to %d: raise its max.message.bytes or lower part_bytes", name, limit, bytes)
				}
			case "cleanup.policy":
				if e.ConfigValue != policy {
					return fmt.Errorf("topic %s has the cleanup.policy %s, must be %s", name, e.ConfigValue, policy)
				}
			}
		}
	}
	return nil
}
