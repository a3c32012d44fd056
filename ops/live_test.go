package ops

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// liveServer serves a status that changes with queue.
func liveServer(t *testing.T, queue *atomic.Int64) (s *Server, stop func() error) {
	t.Helper()
	status := func(context.Context) (Status, error) {
		now := time.Now()
		return Status{
			Now: now, Ready: true, Disks: []Disk{{"products", now.UnixNano()}},
			Datasets: []Dataset{{Name: "sea", Queue: int(queue.Load()), LastPoll: now}},
		}, nil
	}
	s, err := New(Config{Listen: "127.0.0.1:0"}, Sources{Status: status}, slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, s.Listen())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() error { cancel(); return <-done }
	return s, stop
}

// listen opens a stream and returns its lines.
func listen(t *testing.T, s *Server, query string) (lines <-chan string, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/events"+query, nil)
	must(t, err)
	r, err := http.DefaultTransport.RoundTrip(request)
	must(t, err)
	t.Cleanup(func() { r.Body.Close() })
	out := make(chan string, 100)
	go func() {
		defer close(out)
		for in := bufio.NewScanner(r.Body); in.Scan(); {
			out <- in.Text()
		}
	}()
	return out, r.Header
}

// await returns the first line with a beginning.
func await(t *testing.T, lines <-chan string, beginning string) string {
	t.Helper()
	for limit := time.After(2 * time.Minute); ; {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended before %q", beginning)
			}
			if strings.HasPrefix(line, beginning) {
				return line
			}
		case <-limit:
			t.Fatalf("no %q came", beginning)
		}
	}
}

func TestStreamTellsOfChangesAndEndsWithTheService(t *testing.T) {
	var queue atomic.Int64
	s, stop := liveServer(t, &queue)
	lines, header := listen(t, s, "?since=before")
	if header.Get("Content-Type") != "text/event-stream" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", header)
	}
	first := await(t, lines, "data: ")
	queue.Store(1)
	if second := await(t, lines, "data: "); second == first {
		t.Errorf("two changes have the stamp %q", first)
	}
	began := time.Now()
	if err := stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if took := time.Since(began); took > drainLimit/2 {
		t.Errorf("an open stream held the stop up for %v", took)
	}
	for range lines { // ends, or the test hangs
	}
}

func TestCurrentPageIsNotNotified(t *testing.T) {
	var queue atomic.Int64
	s, stop := liveServer(t, &queue)
	defer stop()
	lines, _ := listen(t, s, "")
	stamp := strings.TrimPrefix(await(t, lines, "data: "), "data: ")
	current, _ := listen(t, s, "?since="+stamp)
	await(t, current, "retry: ")
	queue.Store(7)
	if told := await(t, current, "data: "); told == "data: "+stamp {
		t.Error("a page was told of the status that it shows")
	}
}

func TestStampIgnoresFiguresThatOnlyTimeChanges(t *testing.T) {
	s := example()
	before := stampOf(s)
	s.Now, s.Disks, s.Datasets[0].LastPoll = s.Now.Add(time.Hour), []Disk{{"products", 1}}, s.Now
	if stampOf(s) != before {
		t.Error("an hour without news changed the stamp")
	}
	s.Datasets[0].Queue++
	if stampOf(s) == before {
		t.Error("a new granule in the queue left the stamp as it was")
	}
}

func TestIdlePagesOfOneClientLeaveRoomForOthers(t *testing.T) {
	f := newFeed(exampleStatus)
	reader, _ := f.join("198.51.100.7")
	var idle []*listener
	for range 3 * mostListeners {
		l, _ := f.join("203.0.113.9")
		idle = append(idle, l)
	}
	if len(f.listeners) != mostListeners {
		t.Errorf("%d pages are open, want %d", len(f.listeners), mostListeners)
	}
	if !f.listeners[reader] {
		t.Error("the page of another client was closed")
	}
	for i, l := range idle {
		if kept := i >= len(idle)-(mostListeners-1); f.listeners[l] != kept {
			t.Errorf("page %d of %d is open: %v, want the latest", i, len(idle), !kept)
		}
	}
}

func TestANewPageIsServedHoweverManyAreOpen(t *testing.T) {
	var queue atomic.Int64
	s, stop := liveServer(t, &queue)
	defer stop()
	first, _ := listen(t, s, "")
	await(t, first, "data: ")
	for range mostListeners {
		lines, _ := listen(t, s, "")
		await(t, lines, "data: ")
	}
	if told := await(t, first, "retry: 6"); told != "retry: 60000" {
		t.Errorf("the page that made room is told %q", told)
	}
	for range first { // ends, or the test hangs
	}
}

func TestSlowListenerGetsTheLatestStamp(t *testing.T) {
	f := newFeed(exampleStatus)
	l, leave := f.join("192.0.2.1")
	defer leave()
	for _, stamp := range []string{"a", "b", "b", "c"} {
		f.tell(stamp) // must not block
	}
	if got := <-l.news; got != "c" {
		t.Errorf("a slow listener hears %q, want the latest", got)
	}
}

func TestActionsNeedTheToken(t *testing.T) {
	const token = "0123456789abcdef-secret"
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, token+"\n")
	h, _ := fullHandler(t, file)
	post := func(path, authorization, body string, edit func(*http.Request)) int {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if edit != nil {
			edit(r)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if strings.Contains(w.Body.String(), token) {
			t.Errorf("%s tells the token", path)
		}
		return w.Code
	}
	const good = "Bearer " + token
	foreign := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	otherOrigin := func(r *http.Request) { r.Header.Set("Origin", "http://elsewhere.example") }
	for _, tt := range []struct {
		name, path, authorization, body string
		edit                            func(*http.Request)
		want                            int
	}{
		{"retry", "/actions/retry", good, "dataset=sea&granule=x.nc", nil, 200},
		{"redo", "/actions/redo", good, "dataset=sea&day=2024-05-17&why=new+mask", nil, 200},
		{"pause", "/actions/train", good, "dataset=sea&order=pause", nil, 200},
		{"nothing to cancel", "/actions/train", good, "dataset=sea&order=cancel", nil, 409},
		{"a training without the token", "/actions/train", "", "dataset=sea&order=pause", nil, 401},
		{"a training from elsewhere", "/actions/train", good, "dataset=sea&order=pause", foreign, 403},
		{"no token", "/actions/retry", "", "dataset=sea&granule=x.nc", nil, 401},
		{"wrong token", "/actions/retry", good + "x", "dataset=sea&granule=x.nc", nil, 401},
		{"another scheme", "/actions/retry", "Basic " + token, "dataset=sea&granule=x.nc", nil, 401},
		{"a page from elsewhere", "/actions/retry", good, "dataset=sea&granule=x.nc", foreign, 403},
		{"another origin", "/actions/retry", good, "dataset=sea&granule=x.nc", otherOrigin, 403},
		{"no such granule", "/actions/retry", good, "dataset=sea&granule=none", nil, 404},
		{"nothing to retry", "/actions/retry", good, "dataset=sea&granule=other.nc", nil, 409},
		{"no reason", "/actions/redo", good, "dataset=sea&day=2024-05-17&why=+", nil, 409},
		{"no day", "/actions/redo", good, "dataset=sea&day=17.5.&why=x", nil, 409},
		{"no such action", "/actions/erase", good, "", nil, 404},
		{"too much to say", "/actions/redo", good, "why=" + strings.Repeat("x", 2*actionBytes), nil, 400},
	} {
		if got := post(tt.path, tt.authorization, tt.body, tt.edit); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	if r := get(t, h, "/actions/retry"); r.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET of an action = %d, want 405", r.Code)
	}
}

func TestWithoutATokenFileThereAreNoActions(t *testing.T) {
	h, _ := fullHandler(t, "")
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodPost, "/actions/retry", nil))
	if r.Code != http.StatusForbidden {
		t.Errorf("POST = %d, want 403", r.Code)
	}
	if body := get(t, h, hostilePath(1)).Body.String(); strings.Contains(body, "<form") {
		t.Error("the page offers what nobody may do")
	}
}

func TestTokenFileIsCheckedAtTheStart(t *testing.T) {
	folder := t.TempDir()
	short := filepath.Join(folder, "short")
	must(t, os.WriteFile(short, []byte("secret\n"), 0o600))
	for file, want := range map[string]string{short: "at least", filepath.Join(folder, "absent"): "no such file"} {
		s, err := New(Config{Listen: "127.0.0.1:0", TokenFile: file}, Sources{Status: noStatus}, slog.New(slog.DiscardHandler))
		must(t, err)
		if err := s.Listen(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "token_file") {
			t.Errorf("Listen() = %v, want %q", err, want)
		}
	}
}
