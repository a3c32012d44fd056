package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/daemon/pages"
	"lacuna/ops"
)

// drippingSite is a web archive whose index page comes one letter at a time,
// without end, until it is healed.
type drippingSite struct {
	*httptest.Server
	asked  chan struct{} // closed when somebody reads the page
	healed chan struct{}
}

func newDrippingSite(t *testing.T) *drippingSite {
	t.Helper()
	s := &drippingSite{asked: make(chan struct{}), healed: make(chan struct{})}
	once := sync.OnceFunc(func() { close(s.asked) })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "<h1>Index of /</h1>")
		once()
		for {
			select {
			case <-s.healed:
				return
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
				fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestIntakeThatGetsOnWithNothingIsAnAlarmAndNotReady(t *testing.T) {
	site := newDrippingSite(t)
	b := newBench(t)
	archive := &b.cfg.Datasets[0].Archive
	archive.Type, archive.HTTP.URL = "http", site.URL
	var ahead atomic.Int64 // offset of the daemon's clock
	d := b.daemon(t)
	d.parts.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	stop := start(t, d)
	defer stop()
	ready := func() (int, string) {
		t.Helper()
		resp, err := http.Get("http://" + d.Addr() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	alarms := func() []ops.Alarm {
		t.Helper()
		status, err := pages.AskStatus(t.Context(), "http://"+d.Addr()+"/")
		if err != nil {
			t.Fatal(err)
		}
		return status.Alarms
	}
	<-site.asked
	if code, text := ready(); code != http.StatusOK {
		t.Errorf("while the listing has just begun: %d %s", code, text)
	}
	ahead.Store(int64(archive.Stall + time.Minute))
	if code, text := ready(); code != http.StatusServiceUnavailable || !strings.Contains(text, "intake of sea") {
		t.Errorf("after half an hour of a letter at a time: %d %s", code, text)
	}
	raised := alarms()
	if !slices.ContainsFunc(raised, func(a ops.Alarm) bool {
		return a.Key() == "archive/sea" && strings.Contains(a.Summary, "got on with nothing")
	}) {
		t.Errorf("alarms = %+v, want that the intake stands still", raised)
	}
	close(site.healed)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		code, text := ready()
		if code == http.StatusOK && len(alarms()) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("once the listing has come: %d %s, %+v", code, text, alarms())
		}
	}
}
