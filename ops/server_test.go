package ops

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServerFinishesRequestsUnderWayWhenItStops(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := newServer(t, "127.0.0.1:0", func(context.Context) (Status, error) {
		close(entered)
		<-release
		return Status{Version: "slow"}, nil
	})
	must(t, s.Listen())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	body := make(chan string, 1)
	go func() {
		r, err := http.Get("http://" + s.Addr() + "/status.json")
		if err != nil {
			body <- err.Error()
			return
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		body <- string(text)
	}()
	<-entered
	cancel()
	select {
	case err := <-done:
		t.Fatalf("Run() = %v with a request under way", err)
	case <-time.After(50 * time.Millisecond): // long enough for a server that does not wait
	}
	close(release)
	if got := <-body; !strings.Contains(got, `"slow"`) {
		t.Errorf("the request under way got %q, want the status", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Run() = %v after cancellation, want nil", err)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("the port still answers")
	}
}

func TestErrorOfATakenPortNamesTheRemedy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	s := newServer(t, l.Addr().String(), noStatus)
	err = s.Run(t.Context())
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "set listen to another address") {
		t.Errorf("Run() = %v, want a message with the remedy", err)
	}
	if s.Addr() != "" {
		t.Errorf("Addr() = %q of a server that does not listen", s.Addr())
	}
}

func TestBadListenAddressIsABadConfig(t *testing.T) {
	for _, listen := range []string{"", "8087", "localhost", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", "1:2:3"} {
		_, err := New(Config{Listen: listen}, Sources{Status: noStatus}, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "listen is") {
			t.Errorf("New() with listen %q = %v, want it refused", listen, err)
		}
	}
	for _, listen := range []string{DefaultConfig().Listen, ":0", "[::1]:8087", "lacuna.example:80"} {
		if err := (Config{Listen: listen}).Validate(); err != nil {
			t.Errorf("Validate() of %q = %v", listen, err)
		}
	}
}

func TestNoClientCanStallForEver(t *testing.T) {
	s := newServer(t, "127.0.0.1:0", noStatus).httpServer()
	for name, limit := range map[string]time.Duration{
		"sending a header": s.ReadHeaderTimeout, "sending a request": s.ReadTimeout,
		"taking an answer": s.WriteTimeout, "keeping a connection": s.IdleTimeout,
	} {
		if limit <= 0 {
			t.Errorf("%s has no limit", name)
		}
	}
}

func newServer(t *testing.T, listen string, status func(context.Context) (Status, error)) *Server {
	t.Helper()
	s, err := New(Config{Listen: listen}, Sources{Status: status, Products: filepath.Join(t.TempDir(), "products")}, slog.New(slog.DiscardHandler))
	must(t, err)
	return s
}

func noStatus(context.Context) (Status, error) { return Status{}, nil }

func write(t *testing.T, file, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
