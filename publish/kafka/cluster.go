package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// fetchBytes is asked for at a time. A broker sends a larger message all the
// same, alone.
const fetchBytes = 1 << 20

// Bounds of waiting for the network.
const (
	dialTimeout    = 5 * time.Second        // a broker that has not accepted by then is away
	requestTimeout = 10 * time.Second       // a broker that has not answered by then is frozen or cut off
	fetchWait      = 500 * time.Millisecond // how long the broker holds a request for messages that are not there yet
	metadataTTL    = 2 * time.Second        // how long after a change of leader requests may go to the old one
)

// Cluster reads from and asks about the brokers of a Connection.
type Cluster struct {
	brokers []string
	client  *kafkago.Client
	dialer  *kafkago.Dialer
	pool    *kafkago.Transport
}

// Open reads the certificates and passwords that c names. It does not use the
// network.
func (c Connection) Open() (*Cluster, error) {
	secure, err := c.TLS.Config()
	if err != nil {
		return nil, err
	}
	login, err := c.SASL.mechanism()
	if err != nil {
		return nil, err
	}
	pool := &kafkago.Transport{ClientID: "lacuna", DialTimeout: dialTimeout, MetadataTTL: metadataTTL, TLS: secure, SASL: login}
	return &Cluster{
		brokers: slices.Clone(c.Brokers),
		pool:    pool,
		client:  &kafkago.Client{Addr: kafkago.TCP(c.Brokers...), Timeout: requestTimeout, Transport: pool},
		dialer:  &kafkago.Dialer{ClientID: "lacuna", Timeout: dialTimeout, DualStack: true, TLS: secure, SASLMechanism: login},
	}, nil
}

// Close ends the connections. Requests under way fail.
func (c *Cluster) Close() { c.pool.CloseIdleConnections() }

// Dialer connects to brokers of the cluster, for requests that this package
// does not offer.
func (c *Cluster) Dialer() *kafkago.Dialer { return c.dialer }

// Brokers are the addresses that the cluster was opened with.
func (c *Cluster) Brokers() []string { return slices.Clone(c.brokers) }

// ErrGone says that the cluster no longer has, or never had, a topic, a
// partition, or messages that retention has removed.
var ErrGone = errors.New("not on the brokers any more")

// errNotYet marks an ErrGone that may pass: the broker may not have heard yet
// of a new topic, or is a former leader that does not have the newest messages.
var errNotYet = errors.New("or not yet")

// MayCome reports whether the missing topic or messages of err may turn up
// within seconds: they are not older than the retention.
func MayCome(err error) bool { return errors.Is(err, errNotYet) }

// ErrUndecodable says that a broker has sent a batch that cannot be decoded,
// however often it is asked for: one in an unknown compression, or one that
// kafka-go panics about, such as one of a foreign producer id that compaction
// has emptied.
var ErrUndecodable = errors.New("the broker sent a batch that cannot be decoded")

// Partitions returns the partitions of a topic, fresh from a broker.
func (c *Cluster) Partitions(ctx context.Context, topic string) ([]kafkago.Partition, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	partitions, err := conn.ReadPartitions(topic)
	switch {
	case errors.Is(err, kafkago.UnknownTopicOrPartition), err == nil && len(partitions) == 0:
		return nil, fmt.Errorf("topic %s: %w, %w", topic, ErrGone, errNotYet)
	case err != nil:
		return nil, fmt.Errorf("ask for topic %s: %w", topic, c.explain(err))
	}
	slices.SortFunc(partitions, func(a, b kafkago.Partition) int { return a.ID - b.ID })
	return partitions, nil
}

// dial connects to the first broker that answers.
func (c *Cluster) dial(ctx context.Context) (*kafkago.Conn, error) {
	var errs []error
	for _, broker := range c.brokers {
		conn, err := c.dialer.DialContext(ctx, "tcp", broker)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, c.explain(errors.Join(errs...))
}

// Bounds returns the first offset of a partition and the one that the next
// message will have.
func (c *Cluster) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	conn, err := c.leader(ctx, topic, partition)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return 0, 0, err
	}
	first, next, err = conn.ReadOffsets()
	if err != nil {
		return 0, 0, fmt.Errorf("ask for the offsets of %s/%d: %w", topic, partition, err)
	}
	return first, next, nil
}

func (c *Cluster) leader(ctx context.Context, topic string, partition int) (*kafkago.Conn, error) {
	partitions, err := c.Partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(partitions, func(p kafkago.Partition) bool { return p.ID == partition })
	if i < 0 {
		return nil, fmt.Errorf("partition %s/%d: %w, %w", topic, partition, ErrGone, errNotYet)
	}
	conn, err := c.dialer.DialPartition(ctx, "tcp", "", partitions[i])
	if err != nil {
		return nil, fmt.Errorf("connect to the leader of %s/%d: %w", topic, partition, err)
	}
	return conn, nil
}

// Span is a stretch of one partition.
type Span struct {
	Topic     string
	Partition int
	From, To  int64 // first offset, and the first that is too far; To < 0: without end
}

// Read calls each with the messages of a span in order, one at a time, and
// returns nil when it has come to the end. An offset that compaction has
// emptied is skipped. It returns ErrGone where the partition does not reach
// back to span.From, or does not reach span.To: a span with an end is never
// waited for. Any other error than one of each may be cured by reading on from
// the last message.
func (c *Cluster) Read(ctx context.Context, span Span, each func(kafkago.Message) error) error {
	if span.To >= 0 && span.From >= span.To {
		return nil
	}
	conn, err := c.leader(ctx, span.Topic, span.Partition)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Seek(span.From, kafkago.SeekAbsolute|kafkago.SeekDontCheck); err != nil {
		return fmt.Errorf("seek in %s/%d: %w", span.Topic, span.Partition, err)
	}
	for done := false; !done; {
		if err := conn.SetReadDeadline(time.Now().Add(fetchWait + requestTimeout)); err != nil {
			return err
		}
		done, err = c.readBatch(conn, span, each)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, kafkago.OffsetOutOfRange), errors.Is(err, kafkago.UnknownTopicOrPartition):
			return c.whyGone(ctx, span, err)
		case err != nil:
			return fmt.Errorf("read %s/%d: %w", span.Topic, span.Partition, err)
		}
	}
	return nil
}

// whyGone returns the error for a broker that has nothing at the beginning of a
// span, by the offsets of its partition.
func (c *Cluster) whyGone(ctx context.Context, span Span, answer error) error {
	if errors.Is(answer, kafkago.OffsetOutOfRange) {
		first, next, err := c.Bounds(ctx, span.Topic, span.Partition)
		switch {
		case err != nil:
			return err
		case span.From < first:
			return fmt.Errorf("read %s/%d from offset %d: %w: the first is %d", span.Topic, span.Partition, span.From, ErrGone, first)
		}
		return c.tooFar(span, next)
	}
	return fmt.Errorf("read %s/%d from offset %d: %w, %w", span.Topic, span.Partition, span.From, ErrGone, errNotYet)
}

// tooFar is the error of a span that reaches beyond the end of its partition.
func (c *Cluster) tooFar(span Span, next int64) error {
	return fmt.Errorf("read %s/%d up to offset %d: %w, %w: the partition ends before offset %d",
		span.Topic, span.Partition, span.To-1, ErrGone, errNotYet, next)
}

// readBatch reads the messages of one request, and only then hands them on: a
// slow handler does not hold up the connection. done: the span is at its end.
func (c *Cluster) readBatch(conn *kafkago.Conn, span Span, each func(kafkago.Message) error) (done bool, err error) {
	messages, next, err := fetch(conn)
	for _, m := range messages {
		if span.To >= 0 && m.Offset >= span.To {
			return true, nil
		}
		if err := each(m); err != nil {
			return false, err
		}
		next = max(next, m.Offset+1)
	}
	if err != nil || span.To < 0 || next >= span.To {
		return err == nil && span.To >= 0, err
	}
	if len(messages) == 0 {
		// Nothing came and there is more to the span: a partition that was cut
		// off, or never reached so far, would be waited for without end.
		end, err := conn.ReadLastOffset()
		if err == nil && end < span.To {
			err = c.tooFar(span, end)
		}
		return false, err
	}
	return false, nil
}

// fetch returns the messages of one request and the offset to go on from.
func fetch(conn *kafkago.Conn) (messages []kafkago.Message, next int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrUndecodable, p)
		}
	}()
	batch := conn.ReadBatchWith(kafkago.ReadBatchConfig{MinBytes: 1, MaxBytes: fetchBytes, MaxWait: fetchWait})
	for err == nil {
		var m kafkago.Message
		if m, err = batch.ReadMessage(); err == nil {
			messages = append(messages, m)
		}
	}
	next = batch.Offset()
	if undecodable(err) {
		// Closing the batch would wait for its undecodable rest; the connection
		// is closed instead.
		return messages, next, fmt.Errorf("%w: %w", ErrUndecodable, err)
	}
	err = errors.Join(err, batch.Close())
	if errors.Is(err, io.EOF) || errors.Is(err, kafkago.RequestTimedOut) {
		err = nil // nothing more, or nothing new within fetchWait
	}
	return messages, next, err
}

// undecodable reports whether err is neither the end, nor an error of the
// broker or the network.
func undecodable(err error) bool {
	var answer kafkago.Error
	var network net.Error
	return !errors.Is(err, io.EOF) && !errors.As(err, &answer) && !errors.As(err, &network) &&
		!errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.ErrNoProgress) && !errors.Is(err, net.ErrClosed)
}

// explain adds the likely cause to an error of the protocol.
func (c *Cluster) explain(err error) error {
	if err == nil {
		return nil
	}
	var answered kafkago.Error
	text := err.Error()
	who := strings.Join(c.brokers, ", ")
	switch {
	case errors.Is(err, kafkago.SASLAuthenticationFailed):
		return fmt.Errorf("log in to Kafka at %s: user or password refused: %w", who, err)
	case errors.Is(err, kafkago.UnsupportedSASLMechanism):
		return fmt.Errorf("log in to Kafka at %s: the broker does not know this sasl.mechanism: %w", who, err)
	case errors.As(err, &answered):
		return fmt.Errorf("ask Kafka at %s: %w", who, err)
	case strings.Contains(text, "x509:"), strings.Contains(text, "tls: "):
		return fmt.Errorf("connect to Kafka at %s: the certificates do not fit: %w", who, err)
	case strings.Contains(text, "EOF"): // also as "unexpected EOF: broker appears to be expecting TLS"
		return fmt.Errorf("connect to Kafka at %s: the broker hangs up: is tls or sasl set as its listener wants it? %w", who, err)
	}
	return fmt.Errorf("no Kafka broker answers at %s: %w", who, err)
}
