package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"lacuna/internal/faults"
	"lacuna/internal/pause"
	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"
)

// Where a group that has never committed an offset begins.
const (
	Beginning = "beginning" // every product that the topic knows
	Now       = "now"       // products published from now on
)

// Config holds the settings of a Consumer.
type Config struct {
	kafka.Connection
	Prefix   string // prefix of the topics
	Group    string // members of a group share the datasets among them
	From     string // Beginning or Now
	Dir      string // folder for files being assembled; it must exist
	MaxBytes int64  // size limit of a product; a larger one is reported as missing
	Once     bool   // return when the products that were there at the start have been handed over

	// SessionTimeout is the time for which a member that was killed, or whose
	// broker was, holds its datasets before another gets them. Brokers refuse
	// less than 6 s unless told otherwise.
	SessionTimeout time.Duration

	// Patience is the time after its event during which missing parts of a
	// product are asked for again from brokers that answer. Parts are written
	// before their event, so it need only cover a broker that has not heard of
	// a new leader or a new topic. A broker that does not answer is waited for
	// without end.
	Patience time.Duration

	// Refused is called with a message of the events topic that is skipped;
	// nil: it is logged. An error ends Run, and the message comes again at the
	// next.
	Refused func(ctx context.Context, r Refusal) error

	// LookAgain is the time between two checks that the topic is still the
	// same.
	LookAgain time.Duration
}

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{
		Prefix: "lacuna", Group: "lacuna-consume", From: Beginning, Dir: os.TempDir(),
		MaxBytes:       8 << 30, // a global analysis at 1 km with its uncertainty has 4 GiB
		SessionTimeout: 10 * time.Second,
		Patience:       15 * time.Second, // a broker that was cut off learns of its successor within ten
		LookAgain:      30 * time.Second,
	}
}

// Validate reports everything wrong with c, not just the first thing.
func (c Config) Validate() error {
	errs := faults.Of(c.Connection.Validate())
	errs.Check(c.Prefix != "", "prefix is empty")
	errs.Check(c.Group != "", "group is empty")
	errs.Check(c.From == Beginning || c.From == Now, "from is %q, must be beginning or now", c.From)
	errs.Check(c.Dir != "", "dir is empty: name the folder where files are put together")
	errs.Check(c.MaxBytes > 0, "max_bytes is %d, must be positive", c.MaxBytes)
	errs.Check(c.SessionTimeout > 0, "session_timeout is %v, must be positive", c.SessionTimeout)
	errs.Check(c.Patience > 0, "patience is %v, must be positive", c.Patience)
	errs.Check(c.LookAgain > 0, "look_again is %v, must be positive", c.LookAgain)
	return errs.Err()
}

// Refusal is a message of the events topic that cannot be an event.
type Refusal struct {
	Place
	ID     string // ce_id of the message; may be empty
	Reason error
}

// Place is the position of a message of the events topic.
type Place struct {
	Partition int
	Offset    int64
}

// Product is an event and, unless it is a retraction or Missing says otherwise,
// the file.
type Product struct {
	kafka.Event
	Place // position of the event
	// Path of the file, complete, verified and synced. The handler may move it;
	// a file that it leaves there is removed when it returns.
	Path string
	// Missing says why there is no file, where there should be one: its parts
	// are older than the topic keeps, lie beyond its end, are damaged or cannot
	// be read. The event may be true all the same, and its links may lead to
	// the file.
	Missing error
}

// Bytes returns the content of the file.
func (p Product) Bytes() ([]byte, error) {
	if p.Missing != nil {
		return nil, p.Missing
	}
	return os.ReadFile(p.Path)
}

// Handler takes a product. It is called for one product at a time. An error
// ends Run, and the product comes again at the next.
type Handler func(ctx context.Context, p Product) error

// Consumer hands products of the topics to a Handler.
type Consumer struct {
	cfg    Config
	handle Handler
	log    *slog.Logger

	idle time.Duration // how long to wait for a share of the group's partitions

	mu   sync.Mutex      // held while the handler runs; guards seen
	seen map[int]*memory // by partition of the events topic
}

// New returns a Consumer. It checks cfg and touches neither the network nor
// the disk; Run does.
func New(cfg Config, handle Handler, log *slog.Logger) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("consumer config: %w", err)
	}
	return &Consumer{cfg: cfg, handle: handle, log: log.With("component", "consumer", "group", cfg.Group), seen: map[int]*memory{}}, nil
}

// Pauses before trying again.
const (
	rejoinPause = time.Second
	topicPause  = time.Second // between two looks for a topic that is not there yet
	maxIdle     = time.Hour
)

// Run hands over products until ctx is cancelled, or with Once until the
// products that were there at the start have been handed over, and returns nil.
// It waits for brokers that are away and for topics that do not exist yet,
// except with Once. Any other return is the handler's error, or one that needs
// an operator.
func (c *Consumer) Run(ctx context.Context) error {
	cluster, err := c.cfg.Open()
	if err != nil {
		return err
	}
	defer cluster.Close()
	if err := c.awaitTopic(ctx, cluster); err != nil || ctx.Err() != nil {
		return err
	}
	group, err := c.join(cluster)
	if err != nil {
		return err
	}
	defer group.Close()
	for apart := false; ; {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, kafkago.RebalanceInProgress):
			continue
		case hopeless(err):
			return fmt.Errorf("join group %s: %w", c.cfg.Group, err)
		case err != nil:
			if !apart { // once: a broker may be away for days
				c.log.Warn("joining the group did not work, trying again", "err", err)
			}
			apart = true
			continue
		}
		apart = false
		done, err := c.generation(ctx, cluster, gen)
		switch {
		case ctx.Err() != nil:
			return nil
		case done || err != nil:
			return err
		}
		if c.cfg.Once {
			continue
		}
		// The group has no partitions to assign while there is no topic.
		if err := c.awaitTopic(ctx, cluster); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// awaitTopic returns nil when the events topic is there or ctx is cancelled.
func (c *Consumer) awaitTopic(ctx context.Context, cluster *kafka.Cluster) error {
	topic := kafka.EventsTopic(c.cfg.Prefix)
	for warned := false; ; warned = true {
		_, err := cluster.Partitions(ctx, topic)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case c.cfg.Once, hopeless(err):
			return err
		case !warned:
			c.log.Warn("waiting for the events topic", "topic", topic, "err", err)
		}
		if !pause.For(ctx, topicPause) {
			return nil
		}
	}
}

func (c *Consumer) join(cluster *kafka.Cluster) (*kafkago.ConsumerGroup, error) {
	start := kafkago.FirstOffset
	if c.cfg.From == Now {
		start = kafkago.LastOffset
	}
	return kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: cluster.Brokers(), Dialer: cluster.Dialer(), Topics: []string{kafka.EventsTopic(c.cfg.Prefix)},
		StartOffset: start, SessionTimeout: c.cfg.SessionTimeout, HeartbeatInterval: c.cfg.SessionTimeout / 4, JoinGroupBackoff: rejoinPause,
		WatchPartitionChanges: true,
	})
}

// generation works on the partitions that the group gives us until it is
// rebalanced. done: with Once, everything has been handed over.
func (c *Consumer) generation(ctx context.Context, cluster *kafka.Cluster, gen *kafkago.Generation) (done bool, err error) {
	result := make(chan error, 1)
	gen.Start(func(genCtx context.Context) {
		within, cancel := context.WithCancel(genCtx)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		result <- c.work(within, cluster, gen)
	})
	err = <-result
	switch {
	case err == nil:
		return c.cfg.Once, nil
	case errors.Is(err, errRebalanced):
		return false, nil
	}
	return false, err
}

// hopeless reports whether only an operator can cure err.
func hopeless(err error) bool {
	for _, never := range []kafkago.Error{
		kafkago.SASLAuthenticationFailed, kafkago.UnsupportedSASLMechanism, kafkago.GroupAuthorizationFailed,
		kafkago.TopicAuthorizationFailed, kafkago.InvalidSessionTimeout, kafkago.InvalidGroupId,
	} {
		if errors.Is(err, never) {
			return true
		}
	}
	return false
}

// errRebalanced ends a generation: the group is about to rebalance.
var errRebalanced = errors.New("the group is rebalancing its partitions")

// work follows every partition of a generation.
func (c *Consumer) work(ctx context.Context, cluster *kafka.Cluster, gen *kafkago.Generation) error {
	topic := kafka.EventsTopic(c.cfg.Prefix)
	assigned := gen.Assignments[topic]
	if len(assigned) == 0 && !c.cfg.Once {
		// Either the other members have it all, or the group was shared out
		// while the topic was being made anew, which it does not notice: join
		// again, ever more rarely, since it disturbs the others.
		wait := max(c.idle, rejoinPause)
		if pause.For(ctx, wait) { // else another member made the group rebalance during the wait
			c.idle = min(2*wait, maxIdle)
		}
		return errRebalanced
	}
	c.idle = 0
	g, ctx := errgroup.WithContext(ctx)
	for _, a := range assigned {
		f := &follower{
			Consumer: c, cluster: cluster, topic: topic, partition: a.ID, position: a.Offset,
			commit: func(offset int64) error {
				return gen.CommitOffsets(map[string]map[int]int64{topic: {a.ID: offset}})
			},
		}
		g.Go(func() error { return f.run(ctx) })
	}
	return g.Wait()
}
