package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	mostListeners = 64               // open pages; each costs a connection
	lookPause     = time.Second      // between two readings of the status while a page is open
	lookShare     = 20               // readings take at most one part in so many of the time, however large the ledger
	heartbeat     = 15 * time.Second // below the minute after which proxies give up
)

// comeBack asks a browser that was disconnected to wait for a minute before it
// reconnects, which disconnects another.
const comeBack = "retry: 60000\n\n"

// feed notifies open pages of changes. It sends no content: a page loads itself
// again.
type feed struct {
	status func(context.Context) (Status, error)
	ended  chan struct{} // closed when the service stops
	end    func()
	wake   chan struct{} // a page has joined

	mu        sync.Mutex // guards the fields below
	stamp     string     // stamp of the last status
	joined    int        // listeners so far
	listeners map[*listener]bool
}

// listener is an open page.
type listener struct {
	who   string        // name of its client
	order int           // order of joining
	news  chan string   // the latest stamp that it has not taken
	gone  chan struct{} // closed when it must make room
}

func newFeed(status func(context.Context) (Status, error)) *feed {
	f := &feed{status: status, ended: make(chan struct{}), wake: make(chan struct{}, 1), listeners: map[*listener]bool{}}
	f.end = sync.OnceFunc(func() { close(f.ended) })
	return f
}

// run reads the status while a page is open, until ctx is cancelled, and
// notifies listeners. A status that cannot be read is no change: the page
// itself reports it.
func (f *feed) run(ctx context.Context) {
	defer f.end()
	pause := time.NewTimer(lookPause)
	defer pause.Stop()
	for {
		if !f.heard() {
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
			}
		}
		began := time.Now()
		if s, err := f.status(ctx); err == nil {
			f.tell(stampOf(s))
		}
		pause.Reset(max(lookPause, lookShare*time.Since(began)))
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (f *feed) heard() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listeners) > 0
}

// tell passes a new stamp to the listeners. One that has not taken the last
// stamp yet gets this one instead.
func (f *feed) tell(stamp string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if stamp == f.stamp {
		return
	}
	f.stamp = stamp
	for l := range f.listeners {
		select {
		case <-l.news:
		default:
		}
		l.news <- stamp
	}
}

// join adds a listener of a client. Where there are too many, another is
// disconnected, so that a new page is always served.
func (f *feed) join(who string) (l *listener, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.listeners) >= mostListeners {
		last := f.dispensable()
		delete(f.listeners, last)
		close(last.gone)
	}
	f.joined++
	l = &listener{who: who, order: f.joined, news: make(chan string, 1), gone: make(chan struct{})}
	if f.stamp != "" {
		l.news <- f.stamp
	}
	f.listeners[l] = true
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return l, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, l)
	}
}

// dispensable returns the listener to disconnect: the oldest of the client with
// the most, so that a client with many pages does not hurt others. The lock is
// held.
func (f *feed) dispensable() *listener {
	held := map[string]int{}
	for l := range f.listeners {
		held[l.who]++
	}
	var out *listener
	for l := range f.listeners {
		if out == nil || held[l.who] > held[out.who] || held[l.who] == held[out.who] && l.order < out.order {
			out = l
		}
	}
	return out
}

// ServeHTTP streams the changes since the stamp that the page was made with.
func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l, leave := f.join(clientAddress(r))
	defer leave()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // for proxies that collect answers
	line := stream{w: w, control: http.NewResponseController(w)}
	if line.open() != nil {
		return
	}
	known := r.URL.Query().Get("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		known = last // the browser has reconnected
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-f.ended:
			return
		case <-l.gone:
			_ = line.send(comeBack) // the page may have been closed
			return
		case <-beat.C:
			err = line.send(":\n\n")
		case stamp := <-l.news:
			if stamp != known {
				known = stamp
				err = line.send("id: " + stamp + "\nevent: change\ndata: " + stamp + "\n\n")
			}
		}
		if err != nil {
			return // the page was closed
		}
	}
}

// stream writes to one listener.
type stream struct {
	w       io.Writer
	control *http.ResponseController
}

// open lifts the limits of ordinary requests and tells the browser that the
// stream is open, and how long to wait before it reconnects.
func (s stream) open() error {
	// Tests without a connection have no deadline to lift.
	if err := s.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return s.send("retry: 3000\n\n")
}

// send writes and flushes text, within the limit of a page.
func (s stream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(responseLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}

// stampOf returns a fingerprint of a status. Ages and free bytes, which change
// all the time, are left out: a page updates ages by itself.
func stampOf(s Status) string {
	s.Now, s.Disks = time.Time{}, nil
	s.Datasets = append([]Dataset{}, s.Datasets...)
	for i := range s.Datasets {
		s.Datasets[i].LastPoll = time.Time{}
	}
	alarms := make([]Alarm, len(s.Alarms))
	for i, a := range s.Alarms {
		alarms[i] = Alarm{Name: a.Name, Subject: a.Subject} // summaries contain ages
	}
	s.Alarms = alarms
	hash := fnv.New64a()
	if err := json.NewEncoder(hash).Encode(s); err != nil {
		return "unknown" // a number that JSON does not have; the page is not notified
	}
	return fmt.Sprintf("%016x", hash.Sum64())
}
