package embedded

import (
	"net"
	"testing"
	"time"

	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
)

func TestBrokerListensOnTheLoopbackPortItIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cfg := DefaultConfig()
	cfg.Port = port
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := net.SplitHostPort(b.Addr())
	if ip := net.ParseIP(host); err != nil || b.Addr() != l.Addr().String() || !ip.IsLoopback() {
		t.Errorf("broker is at %s, want %s", b.Addr(), l.Addr())
	}
	if _, err := New(cfg); err == nil {
		t.Error("a second broker took the same port")
	}
	b.Close()
	if conn, err := net.Dial("tcp", l.Addr().String()); err == nil {
		conn.Close()
		t.Error("the port is still open after Close")
	}
}

func TestMemoryOfTheBrokerIsBounded(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxTopicBytes = 1 << 20
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.cluster.CreateTopic("t", 1, map[string]string{"cleanup.policy": "delete"}); err != nil {
		t.Fatal(err)
	}
	pool := &kafkago.Transport{}
	defer pool.CloseIdleConnections()
	w := &kafkago.Writer{Addr: kafkago.TCP(b.Addr()), Topic: "t", BatchSize: 1, RequiredAcks: kafkago.RequireAll, Transport: pool}
	defer w.Close()
	for range 20 {
		if err := w.WriteMessages(t.Context(), kafkago.Message{Value: make([]byte, 500_000)}); err != nil {
			t.Fatal(err)
		}
	}
	b.cluster.ApplyRetention()
	c, err := kafka.Connection{Brokers: []string{b.Addr()}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first, next, err := c.Bounds(t.Context(), "t", 0)
	if err != nil || next != 20 || next-first > 4 {
		t.Errorf("the broker keeps messages %d to %d (%v), want the last few", first, next, err)
	}
}

func TestCloseComesBack(t *testing.T) {
	b, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { b.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Error("Close does not return")
	}
}
