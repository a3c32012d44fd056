package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/pages"
	"lacuna/daemon/quarantine"
	"lacuna/internal/durable"
	"lacuna/ledger"
	"lacuna/ops"
)

// plain chooses a method that fills in no time.
func (b *bench) plain() *Dataset {
	set := &b.cfg.Datasets[0]
	set.Fill.Method, set.Fill.PastDays, set.Fill.FutureDays, set.DailySkill = "persistence", 1, 0, false
	return set
}

func TestOverviewAsksTheDaemonThatRunsAndElseTheBooks(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.cfg.Web.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	deliverDays(t, b, 2)
	look := func() pages.Overview {
		v, err := b.daemon(t).Overview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := look(); v.Running || len(v.Status.Datasets) != 1 || exists(b.cfg.StateDir) {
		t.Errorf("before the first run: %+v, state there %v", v, exists(b.cfg.StateDir))
	}
	stop := start(t, b.daemon(t))
	until(t, "two products in the overview", func() bool {
		v := look()
		return v.Running && v.Page != "" && productsOf(v.Status.Datasets[0]) == 2
	})
	v := look()
	if v.Holder == "" || v.Status.Started.IsZero() || !v.Status.Ready || v.Status.Ledger.Bytes == 0 {
		t.Errorf("beside a daemon: %+v", v)
	}
	stop()
	v = look()
	if v.Running || v.Page != "" || productsOf(v.Status.Datasets[0]) != 2 || !v.Status.Started.IsZero() {
		t.Errorf("after the daemon: %+v", v)
	}
}

// productsOf counts the products of a dataset.
func productsOf(d ops.Dataset) int {
	n := 0
	for _, c := range d.States {
		if c.State == "stored" || c.State == "announced" {
			n += c.Granules
		}
	}
	return n
}

// A backfill that is requested beside a running daemon is done by that daemon,
// behind the live lane.
func TestADaemonDoesABackfillBehindWhatIsLive(t *testing.T) {
	skipInShort(t)
	b := newBench(t)
	set := b.plain()
	set.Archive.Lookback = 48 * time.Hour // the simulated days are years ago: nothing is live
	w := world(t, 24, 32)
	days := firstVersions(w, 12)
	for _, d := range days {
		put(t, b.archive(), w.Granule(d))
	}
	d := b.daemon(t)
	stop := start(t, d)
	defer stop()
	until(t, "the daemon runs", func() bool { return d.Addr() != "" })
	first := w.Granule(days[0]).Seen.Time.UTC().Truncate(24 * time.Hour)
	last := w.Granule(days[9]).Seen.Time.UTC().Truncate(24 * time.Hour)
	beside := b.daemon(t)
	ask, err := beside.Station().AskBackfill(operate.Backfill{Dataset: "sea", From: first, To: last})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	news, err := beside.Backfill(t.Context(), ask, func(operate.BackfillNews) { told++ })
	if err != nil || !news.Done || !news.ByDaemon || news.Products != 10 || told == 0 {
		t.Errorf("Backfill() = %+v, %v, told %d times", news, err, told)
	}
	b.operate(t, func(o *operate.Operations) error {
		stories, err := o.Why(t.Context(), days[3].Name, "")
		if err != nil || !strings.Contains(stories[0].Lines[0].Text, "in the backfill lane") {
			t.Errorf("Why() = %+v, %v", stories, err)
		}
		if s, err := o.Why(t.Context(), days[11].Name, ""); !errors.Is(err, operate.ErrUnknown) {
			t.Errorf("a day behind the range was fetched: %+v, %v", s, err)
		}
		return nil
	})
	// After an interruption the request stays and goes on at its next day.
	long := operate.Backfill{Dataset: "sea", From: first.AddDate(0, -3, 0), To: last}
	if long, err = beside.Station().AskBackfill(long); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if news, err := beside.Station().FollowBackfill(cancelled, long, func(operate.BackfillNews) {}); news.Done && err == nil {
		t.Errorf("a backfill that was cut off is done: %+v", news)
	}
	if gone, err := beside.Station().CancelBackfill("sea"); err != nil || !gone && exists(b.cfg.state().Backfill("sea")) {
		t.Errorf("CancelBackfill() = %v, %v", gone, err)
	}
}

func TestABackfillIsResumedWhereItStopped(t *testing.T) {
	b := newBench(t)
	set := b.plain()
	set.Archive.Lookback = 48 * time.Hour
	d := b.daemon(t)
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	ask, err := d.Station().AskBackfill(operate.Backfill{Dataset: "sea", From: from, To: from.AddDate(0, 0, 99)})
	if err != nil {
		t.Fatal(err)
	}
	book, err := d.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if more, err := d.Station().BackfillChunk(t.Context(), &ask, book); !more || err != nil {
		t.Fatalf("BackfillChunk() = %v, %v", more, err)
	}
	book.Close()
	again, err := b.daemon(t).Station().AskBackfill(operate.Backfill{Dataset: "sea", From: from, To: from.AddDate(0, 0, 99)})
	if err != nil || !again.Next.Equal(from.AddDate(0, 0, operate.BackfillDays)) {
		t.Errorf("the same backfill begins at %v, %v", again.Next, err)
	}
	if _, err := d.Station().AskBackfill(operate.Backfill{Dataset: "sea", From: from, To: from}); !errors.Is(err, operate.ErrBackfill) {
		t.Errorf("AskBackfill() = %v beside another", err)
	}
	if _, err := d.Station().AskBackfill(operate.Backfill{Dataset: "lake", From: from, To: from}); !errors.Is(err, ErrConfig) {
		t.Errorf("AskBackfill() = %v of a dataset that is not there", err)
	}
}

func TestADaemonWithAProblemRingsItsHook(t *testing.T) {
	messages := make(chan ops.Message, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m ops.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		messages <- m
	}))
	defer hook.Close()
	b := newBench(t)
	b.plain()
	b.cfg.Alarms.Webhook, b.cfg.Alarms.Check, b.cfg.Alarms.DiskFreeMiB = hook.URL, 20*time.Millisecond, 0
	if err := os.Remove(b.archive()); err != nil {
		t.Fatal(err)
	}
	stop := start(t, b.daemon(t))
	defer stop()
	wait := func() ops.Message {
		select {
		case m := <-messages:
			return m
		case <-time.After(2 * time.Minute):
			t.Fatalf("no message\n%s", b.log)
			return ops.Message{}
		}
	}
	if m := wait(); m.State != "firing" || m.Name != "archive" || m.Subject != "sea" {
		t.Errorf("message is %+v", m)
	}
	if err := os.MkdirAll(b.archive(), 0o755); err != nil {
		t.Fatal(err)
	}
	if m := wait(); m.State != "resolved" || m.Name != "archive" {
		t.Errorf("after the archive is back the message is %+v", m)
	}
}

// A retry that crashes between its steps can be repeated.
func TestARetryIsSafeToRepeat(t *testing.T) {
	b := newBench(t)
	b.plain()
	if err := os.WriteFile(filepath.Join(b.archive(), "20240609_page.nc"), []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.once(t)
	b.operate(t, func(o *operate.Operations) error {
		rows, err := b.book(t).Granules(t.Context(), ledger.GranuleQuery{State: ledger.Quarantined})
		if err != nil || len(rows) != 1 {
			t.Fatal(err, len(rows))
		}
		aside := quarantine.Folder{State: b.cfg.state()}.File(rows[0])
		// A crash after the file was linked and before the ledger knew.
		place := filepath.Join(b.cfg.state().Spool(), rows[0].SHA256[:2], rows[0].SHA256, "20240609_page.nc")
		if err := durable.Link(aside, place); err != nil {
			t.Fatal(err)
		}
		if err := o.Retry(t.Context(), "sea", "20240609_page.nc"); err != nil {
			t.Error(err)
		}
		if exists(aside) || !exists(place) {
			t.Errorf("after a retry the file is aside %v, in the spool %v", exists(aside), exists(place))
		}
		if err := o.Retry(t.Context(), "sea", "20240609_page.nc"); !errors.Is(err, ledger.ErrNotAside) {
			t.Errorf("Retry() = %v of what was taken up already", err)
		}
		return nil
	})
	if got := b.once(t); got.SetAside != 1 {
		t.Errorf("Once() = %+v, want it set aside again", got)
	}
}

// A process is killed after it has set a file aside and before the ledger knows: the
// granule is judged again, and what was set aside too early goes. An earlier version
// moved the file out of the spool: it is brought back.
func TestAGranuleOnItsWayOutOfTheSpoolIsBroughtBack(t *testing.T) {
	t.Run("linked", func(t *testing.T) { wayOut(t, false) })
	t.Run("moved", func(t *testing.T) { wayOut(t, true) })
}

func wayOut(t *testing.T, moved bool) {
	t.Helper()
	b := newBench(t)
	b.plain()
	deliverDays(t, b, 1)
	if _, err := b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{}); err != nil {
		t.Fatal(err)
	}
	pending, err := b.book(t).Pending(t.Context(), "sea")
	if err != nil || len(pending) != 1 {
		t.Fatal(pending, err)
	}
	aside, err := quarantine.Folder{State: b.cfg.state()}.Put(pending[0], "a reason")
	if err != nil || !exists(aside) || !exists(pending[0].SpoolPath) {
		t.Fatalf("Put() = %v, the file is aside %v, in the spool %v", err, exists(aside), exists(pending[0].SpoolPath))
	}
	if moved {
		if err := os.Remove(pending[0].SpoolPath); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.once(t); got.Products != 1 || got.Unfinished != 0 {
		t.Errorf("Once() = %+v, want its product\n%s", got, b.log)
	}
	if exists(aside) || exists(aside+quarantine.WhySuffix) {
		t.Error("the file, or its reason, is still set aside")
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
