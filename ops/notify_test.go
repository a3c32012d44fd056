package ops

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// manager listens on the socket of a service manager, and returns its messages.
func manager(t *testing.T, watchdogUsec string) <-chan string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", watchdogUsec)
	heard := make(chan string, 100)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				return
			}
			heard <- string(buffer[:n])
		}
	}()
	return heard
}

func hear(t *testing.T, heard <-chan string) string {
	t.Helper()
	select {
	case message := <-heard:
		return message
	case <-time.After(2 * time.Minute):
		t.Fatal("the manager hears nothing")
		return ""
	}
}

// hearUntil reads messages until one is as wanted; too many others fail the
// test.
func hearUntil(t *testing.T, heard <-chan string, wanted func(message string) bool) {
	t.Helper()
	const most = 200
	for range most {
		if wanted(hear(t, heard)) {
			return
		}
	}
	t.Fatalf("%d messages, and none is the one that is waited for", most)
}

func TestManagerIsNotifiedOfEveryChange(t *testing.T) {
	heard := manager(t, "")
	s := NewSupervisor(slog.New(slog.DiscardHandler))
	s.Ready("two datasets\nMAINPID=1")
	s.Reloading()
	s.Stopping()
	for _, want := range []string{"READY=1\nSTATUS=two datasets MAINPID=1", "RELOADING=1\nMONOTONIC_USEC=", "STOPPING=1\nSTATUS="} {
		if got := hear(t, heard); !strings.HasPrefix(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
}

func TestHeartbeatsStopWhileAStageHangs(t *testing.T) {
	heard := manager(t, "40000") // 40 ms
	s := NewSupervisor(slog.New(slog.DiscardHandler))
	var hangs atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Watch(ctx, func() string {
			if hangs.Load() {
				return "worker of sea"
			}
			return ""
		}, func() string { return "fine" })
	}()
	if got := hear(t, heard); got != "WATCHDOG=1\nSTATUS=fine" {
		t.Errorf("heard %q of a service that lives", got)
	}
	hangs.Store(true)
	hearUntil(t, heard, func(m string) bool { return m == "STATUS=worker of sea hangs" })
	for range 3 {
		if got := hear(t, heard); strings.Contains(got, "WATCHDOG") {
			t.Errorf("heard %q while a stage hangs", got)
		}
	}
	hangs.Store(false)
	hearUntil(t, heard, func(m string) bool { return strings.HasPrefix(m, "WATCHDOG=1") })
	stop()
	<-ended
}

func TestWithoutAManagerNothingIsSent(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	s := NewSupervisor(slog.New(slog.DiscardHandler))
	s.Ready("fine")
	s.Stopping()
	s.Watch(t.Context(), nil, nil) // returns at once, for there is no watchdog
}
