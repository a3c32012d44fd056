package workers

import (
	"context"
	"fmt"
	"net"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/internal/faults"
	"lacuna/publish/kafka"
	"lacuna/publish/s3"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Kinds of workers.
const (
	Local = "local" // granules are filled in the daemon
	Kafka = "kafka" // by worker processes, on any machine
)

// Config is the section workers of the configuration.
type Config struct {
	Type      string `yaml:"type"`       // local: the daemon fills; kafka: processes of `lacuna worker` do
	SharedDir string `yaml:"shared_dir"` // folder that the daemon and all workers see; empty: shared in state_dir
	S3        *S3    `yaml:"s3"`         // a bucket in its place; absent: none
	Prefix    string `yaml:"prefix"`     // beginning of the names of topics and groups; empty: that of publish.kafka

	kafka.Connection `yaml:",inline"` // without brokers: that of publish.kafka

	Session     time.Duration `yaml:"session"`     // silence after which a worker, or the coordinator, counts as gone
	Tries       int           `yaml:"tries"`       // attempts at a job before it is given up
	InFlight    int           `yaml:"in_flight"`   // jobs of one dataset that are sent ahead
	Partitions  int           `yaml:"partitions"`  // partitions of new topics of jobs, and so the most workers at a time
	Replication int           `yaml:"replication"` // replicas of new topics; -1: the broker's default
	Keep        time.Duration `yaml:"keep"`        // how long files in the shared folder stay after their last use
	Train       bool          `yaml:"train"`       // of the daemon: trainings are jobs too, not children of its own; of a worker: it takes them beside fills

	// Dial connects to a broker; nil: as usual.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `yaml:"-"`
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Type: Local, Connection: kafka.Connection{Brokers: []string{}},
		// A worker that was killed is missed after this; shorter ones take a slow
		// network for a death.
		Session:     20 * time.Second,
		Tries:       3,
		InFlight:    128, // twice the workers that the partitions admit, so that none waits for the coordinator
		Partitions:  64,
		Replication: -1,
		Keep:        72 * time.Hour, // a weekend: by then a result is stored, or done again
	}
}

// UnmarshalYAML fills in the defaults; a word alone is the type.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	type section Config
	*c = DefaultConfig()
	var word string
	if unmarshal(&word) == nil {
		c.Type = word
		return nil
	}
	return unmarshal((*section)(c))
}

// S3 is a bucket that the daemon and all workers see.
type S3 struct {
	s3.Config `yaml:",inline"`
}

// UnmarshalYAML fills in the defaults before the keys are read.
func (s *S3) UnmarshalYAML(unmarshal func(any) error) error {
	type plain S3
	*s = S3{Config: s3.DefaultConfig()}
	return unmarshal((*plain)(s))
}

// Folder returns what the daemon and all workers see.
func (c Config) Folder() (jobs.Folder, error) {
	if c.S3 == nil {
		return jobs.Folder{Storage: jobs.Dir(c.SharedDir)}, nil
	}
	b, err := s3.Open(c.S3.Config)
	return jobs.Folder{Storage: jobs.Bucket{Bucket: b}}, err
}

// Validate reports everything wrong with c. Each message begins with the key.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(c.Type == Local || c.Type == Kafka, "type is %q, must be %s or %s", c.Type, Local, Kafka)
	if c.Type != Kafka {
		return errs.Err()
	}
	errs.Add(c.Connection.Validate())
	if c.S3 != nil {
		errs.Add(faults.In("s3", c.S3.Validate()))
		errs.Check(c.S3.Prefix != "", "s3.prefix is empty, must be a folder of its own: what is not used is removed there")
	}
	errs.Check(c.Prefix != "", "prefix is empty")
	errs.Check(c.Session >= time.Second && c.Session <= 5*time.Minute, "session is %v, must be from a second to five minutes", c.Session)
	errs.Check(c.Tries >= 1, "tries is %d, must be positive", c.Tries)
	errs.Check(c.InFlight >= 1 && c.InFlight <= 10_000, "in_flight is %d, must be 1..10000", c.InFlight)
	errs.Check(c.Partitions >= 1, "partitions is %d, must be positive", c.Partitions)
	errs.Check(c.Replication == -1 || c.Replication > 0, "replication is %d, must be positive, or -1 for the broker's default", c.Replication)
	errs.Check(c.Keep >= time.Hour, "keep is %v, must be at least an hour", c.Keep)
	return errs.Err()
}

func (c Config) live() string     { return c.Prefix + ".jobs" }
func (c Config) backfill() string { return c.Prefix + ".jobs.backfill" }
func (c Config) results() string  { return c.Prefix + ".results" }
func (c Config) dead() string     { return c.Prefix + ".dead" }
func (c Config) turn() string     { return c.Prefix + ".turn" }
func (c Config) training() string { return c.Prefix + ".jobs.train" }
func (c Config) group() string    { return c.Prefix + ".workers" }
func (c Config) trainers() string { return c.Prefix + ".trainers" }

// heartbeat is how often a member of a group shows that it is there.
func (c Config) heartbeat() time.Duration { return min(c.Session/6, 3*time.Second) }

// scanPause is the time between two looks for results whose announcement was lost, and
// for topics that were deleted; lookPause that between two looks for one job.
func (c Config) scanPause() time.Duration { return min(c.Session/4, 5*time.Second) }
func (c Config) lookPause() time.Duration { return min(c.Session, 20*time.Second) }

// retryPause is the time between two attempts of one worker: a shared folder that is
// away for a moment is no reason to give a job up.
func (c Config) retryPause() time.Duration { return min(c.Session/10, 2*time.Second) }

// options are those of every client.
func (c Config) options() ([]kgo.Opt, error) {
	secure, err := c.TLS.Config()
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID("lacuna"), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}
	switch {
	case c.Dial != nil: // for tests, which cut connections
		options = append(options, kgo.Dialer(c.Dial))
	case secure != nil:
		options = append(options, kgo.DialTLSConfig(secure))
	}
	if c.SASL.Mechanism == "" {
		return options, nil
	}
	password, err := c.SASL.Password()
	if err != nil {
		return nil, err
	}
	switch c.SASL.Mechanism {
	case "plain":
		return append(options, kgo.SASL(plain.Auth{User: c.SASL.User, Pass: password}.AsMechanism())), nil
	case "scram-sha-256":
		return append(options, kgo.SASL(scram.Auth{User: c.SASL.User, Pass: password}.AsSha256Mechanism())), nil
	case "scram-sha-512":
		return append(options, kgo.SASL(scram.Auth{User: c.SASL.User, Pass: password}.AsSha512Mechanism())), nil
	}
	return nil, fmt.Errorf("sasl.mechanism %q is not known", c.SASL.Mechanism)
}

// client connects with more options.
func (c Config) client(more ...kgo.Opt) (*kgo.Client, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(options, more...)...)
}
