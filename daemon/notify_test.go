package daemon

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAStageThatIsSilentAtWorkHangs(t *testing.T) {
	now := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	v := &vitals{now: func() time.Time { return now }}
	quick, slow := v.pulse("quick", time.Minute), v.pulse("slow", time.Hour)
	quick.beat()
	slow.beat()
	for _, step := range []struct {
		name  string
		after time.Duration
		do    func()
		want  string
	}{
		{"within its limit", time.Minute, nil, ""},
		{"beyond it", time.Second, nil, "quick"},
		{"it moves again", 0, quick.beat, ""},
		{"who waits may be silent", 50 * time.Minute, quick.rest, ""},
		{"the slow one has its own limit", 10 * time.Minute, nil, "slow"},
	} {
		if step.do != nil {
			step.do()
		}
		now = now.Add(step.after)
		if got := v.hung(); got != step.want {
			t.Errorf("%s: %q hangs, want %q", step.name, got, step.want)
		}
	}
	(*vitals)(nil).pulse("of nobody", time.Hour).beat()
}

func TestServiceManagerHearsReadyWatchdogAndStopping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "100000") // 100 ms
	hear := func() string {
		t.Helper()
		buffer := make([]byte, 4096)
		_ = socket.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, err := socket.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
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
	hung := d.vitals.pulse("the test", 0)
	hung.beat()
	until("what hangs", func(m string) bool { return strings.Contains(m, "the test hangs") })
	if got := hear(); strings.Contains(got, "WATCHDOG=1") {
		t.Errorf("heard %q while a stage hangs", got)
	}
	hung.rest()
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	until("of the stop", func(m string) bool { return strings.HasPrefix(m, "STOPPING=1\n") })
	<-stopped
}
