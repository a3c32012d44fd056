package kafka

import (
	"regexp"
	"time"

	"github.com/segmentio/kafka-go/compress"

	"lacuna/internal/faults"
)

// Config holds the settings of a Sink.
type Config struct {
	Connection `yaml:",inline"`

	Prefix      string        `yaml:"prefix"`      // beginning of the names of both topics
	Source      string        `yaml:"source"`      // ce_source of the events: the name of this installation
	Compression string        `yaml:"compression"` // none, gzip, snappy, lz4 or zstd
	PartBytes   int           `yaml:"part_bytes"`  // bytes of a product in one message
	Timeout     time.Duration `yaml:"timeout"`     // how long one message is tried before Publish gives up

	Topics Topics `yaml:"topics"`
}

// Topics holds the settings of missing topics. Existing ones are used as they
// are, if that is possible.
type Topics struct {
	Create        bool          `yaml:"create"`         // make missing topics
	Partitions    int           `yaml:"partitions"`     // partitions of a new topic
	Replication   int           `yaml:"replication"`    // replicas of a new topic; -1: the broker's default
	DataRetention time.Duration `yaml:"data_retention"` // how long parts are kept; events are kept for good
	Tombstones    time.Duration `yaml:"tombstones"`     // how long a retraction is kept for readers that are away
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Prefix:      "lacuna",
		Source:      "urn:lacuna",
		Compression: "zstd",
		PartBytes:   maxPartBytes,
		Timeout:     20 * time.Second, // rides out the restart of a broker, which takes about 10 s
		Topics: Topics{
			Create:        true,
			Partitions:    4,
			Replication:   -1,
			DataRetention: 7 * 24 * time.Hour,
			Tombstones:    30 * 24 * time.Hour,
		},
	}
}

// maxPartBytes leaves room for key, headers and the frame of a record batch in
// the 1 MiB that brokers take by default.
const maxPartBytes = 900_000

// minPartBytes keeps the number of parts of a large product sensible.
const minPartBytes = 16 << 10

// topicName matches the names that Kafka accepts, less the room for ".events".
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,200}$`)

// Validate reports everything wrong with c, not just the first thing.
func (c Config) Validate() error {
	errs := faults.Of(c.Connection.Validate())
	errs.Check(topicName.MatchString(c.Prefix), "prefix is %q, must be letters, digits, '.', '_' and '-'", c.Prefix)
	errs.Check(c.Source != "", "source is empty: give the name of this installation for readers, such as urn:lacuna")
	_, known := compressions[c.Compression]
	errs.Check(known, "compression is %q, must be none, gzip, snappy, lz4 or zstd", c.Compression)
	errs.Check(c.PartBytes >= minPartBytes && c.PartBytes <= maxPartBytes,
		"part_bytes is %d, must be from %d to %d", c.PartBytes, minPartBytes, maxPartBytes)
	errs.Check(c.Timeout > 0, "timeout is %v, must be positive", c.Timeout)
	errs.Check(c.Topics.Partitions > 0, "topics.partitions is %d, must be positive", c.Topics.Partitions)
	errs.Check(c.Topics.Replication == -1 || c.Topics.Replication > 0, "topics.replication is %d, must be positive, or -1 for the broker's default", c.Topics.Replication)
	errs.Check(c.Topics.DataRetention >= time.Minute, "topics.data_retention is %v, must be at least a minute", c.Topics.DataRetention)
	errs.Check(c.Topics.Tombstones >= time.Minute, "topics.tombstones is %v, must be at least a minute", c.Topics.Tombstones)
	return errs.Err()
}

// EventsTopic names the topic of the events.
func EventsTopic(prefix string) string { return prefix + ".events" }

// DataTopic names the topic of the parts.
func DataTopic(prefix string) string { return prefix + ".data" }

var compressions = map[string]compress.Compression{
	"none": compress.None, "gzip": compress.Gzip, "snappy": compress.Snappy, "lz4": compress.Lz4, "zstd": compress.Zstd,
}
