package daemon

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/workers"
)

// manager is a service manager with a watchdog of 100 ms; hear returns its next
// message.
func manager(t *testing.T) (hear func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "100000")
	return func() string {
		t.Helper()
		buffer := make([]byte, 4096)
		_ = socket.SetReadDeadline(time.Now().Add(2 * time.Minute))
		n, err := socket.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
}

// A daemon that waits for its turn, or for the brokers, is not taken for one that
// cannot start, and can be stopped.
func TestAStandbyIsWellForTheServiceManager(t *testing.T) {
	hear := manager(t)
	b := newBench(t)
	b.cfg.Workers.Type, b.cfg.Workers.Prefix, b.cfg.Workers.Brokers = workers.Kafka, "standby", []string{"127.0.0.1:1"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.daemon(t).Run(ctx) }()
	if got := hear(); !strings.HasPrefix(got, "READY=1\nSTATUS=standing by") {
		t.Errorf("the first message is %q", got)
	}
	for range 3 {
		if got := hear(); !strings.HasPrefix(got, "WATCHDOG=1\nSTATUS=standing by") {
			t.Errorf("then it hears %q", got)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v", err)
	}
}

func TestServiceManagerHearsReadyWatchdogAndStopping(t *testing.T) {
	hear := manager(t)
	until := func(what string, wanted func(message string) bool) {
		t.Helper()
		for range 400 { // 20 seconds of pings
			if wanted(hear()) {
				return
			}
		}
		t.Fatalf("the manager never hears %s", what)
	}
	b := newBench(t)
	deliverDays(t, b, 1)
	d := b.daemon(t)
	stop := start(t, d)
	if got := hear(); !strings.HasPrefix(got, "READY=1\nSTATUS=1 datasets: 0 products") || !d.ready.Load() {
		t.Errorf("the first message is %q, ready %v", got, d.ready.Load())
	}
	until("of the product", func(m string) bool {
		return strings.HasPrefix(m, "WATCHDOG=1\nSTATUS=1 datasets: 1 products, 0 granules to fill")
	})
	hung := d.heartbeats.Add("the test", 0)
	hung.Beat()
	until("what hangs", func(m string) bool { return strings.Contains(m, "the test hangs") })
	if got := hear(); strings.Contains(got, "WATCHDOG=1") {
		t.Errorf("heard %q while a stage hangs", got)
	}
	hung.Rest()
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	until("of the stop", func(m string) bool { return strings.HasPrefix(m, "STOPPING=1\n") })
	<-stopped
}
