package daemon

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/daemon/work"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/modelstore"
)

// heldFleet does a fill when the test says so, and a re-analysis at once.
type heldFleet struct {
	runner *jobs.Runner
	mu     sync.Mutex
	jobs   map[string]func() error // by granule
	order  []string
}

func (f *heldFleet) Send(_ context.Context, m jobs.Message, _ bool, answer func(jobs.Result)) error {
	do := func() error {
		r, err := f.runner.Run(context.Background(), m, func(int, int) {})
		if err == nil {
			answer(r)
		}
		return err
	}
	if m.Before != nil {
		return do()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.order = append(f.order, m.Granule)
	f.jobs[m.Granule] = do
	return nil
}

// sent waits until so many jobs were sent in all.
func (f *heldFleet) sent(t *testing.T, n int) {
	t.Helper()
	for range 400 {
		f.mu.Lock()
		got := len(f.order)
		f.mu.Unlock()
		if got >= n {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("%v were sent, want %d jobs", f.order, n)
}

func (f *heldFleet) finish(t *testing.T, granule string) {
	t.Helper()
	f.mu.Lock()
	do := f.jobs[granule]
	f.mu.Unlock()
	if do == nil {
		t.Fatalf("%s was not sent: %v", granule, f.order)
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
}

// A day that comes while the job of an earlier one is under way, which would have been
// made with it, is taken up when that product is on record: else nobody would look at
// the product again.
func TestADayThatComesDuringAJobReopensItsProduct(t *testing.T) {
	r := newRolling(t, 6)
	r.deliver(t, 0, 1, 2, 3)
	d := r.daemon(t)
	d.parts.Now = func() time.Time { return r.now }
	book, err := d.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.books().Close(t.Context(), book)
	out, err := d.openOutbox(t.Context(), book)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	renewal := d.openRenewal(book)
	defer renewal.close()
	w, in, err := d.dataset(r.cfg.Datasets[0], shared{book: book, out: out, renewal: renewal})
	if err != nil {
		t.Fatal(err)
	}
	folder := jobs.Folder{Storage: jobs.Dir(t.TempDir())}
	fleet := &heldFleet{runner: &jobs.Runner{Folder: folder, Cache: t.TempDir(), Reader: d.reader}, jobs: map[string]func() error{}}
	w.Remote = &work.Remote{Fleet: fleet, Folder: folder, Version: func(string) *modelstore.Version { return nil }, Most: 3}
	sync := func() {
		t.Helper()
		if _, err := in.Sync(t.Context(), fetch.Days{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	ended := make(chan error, 1)
	go func() {
		_, err := w.WorkOff(t.Context())
		ended <- err
	}()
	fleet.sent(t, 3) // days 0 to 2, made with days up to 3
	r.deliver(t, 4)
	sync()
	name := func(day int) string { return r.days[day].Name }
	fleet.finish(t, name(0)) // now day 3 is looked at, and with it day 4, of which day 2 knows nothing
	time.Sleep(300 * time.Millisecond)
	for day := 1; day < 5; day++ {
		fleet.sent(t, max(day+1, 3))
		fleet.finish(t, name(day))
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	again, err := book.Reopenings(t.Context(), ledger.ReopeningQuery{Dataset: "sea", Granule: name(2)})
	if err != nil || len(again) == 0 || !strings.Contains(again[0].Why, name(4)) {
		t.Errorf("day 2, which was made without the day that ends its window, was looked at again because of %+v, %v", again, err)
	}
}
