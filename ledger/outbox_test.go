package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/ledger/layout"
)

var bothSinks = []string{"disk", "kafka"}

// sendOut takes a new revision of a granule from arrival to the queue.
func sendOut(t *testing.T, l *Ledger, dataset, name, sha256 string, hour int) Granule {
	t.Helper()
	a := arrival(name, sha256)
	a.Dataset = dataset
	g := arriveNow(t, l, a)
	must(t, l.Advance(t.Context(), g.ID, Filled, at(hour)))
	must(t, l.StoreAndQueue(t.Context(), g.ID, outgoing(g, hour), at(hour)))
	return g
}

func outgoing(g Granule, hour int) Outgoing {
	return Outgoing{
		Product:     Product{Path: "p/" + g.Name, SHA256: "s" + g.SHA256},
		Publication: Publication{Time: at(hour), File: "f/" + g.Name, Size: 10, Body: `{"name":"` + g.Name + `"}`},
		Sinks:       bothSinks,
	}
}

func outbox(t *testing.T) *Ledger { return open(t, filepath.Join(t.TempDir(), "ledger.db")) }

// due returns the deliveries due to a sink as dataset/name@revision, a
// retraction with a minus.
func due(t *testing.T, l *Ledger, sink string) []string {
	t.Helper()
	ds, err := l.Due(t.Context(), sink)
	must(t, err)
	var all []string
	for _, d := range ds {
		mark := ""
		if d.Kind == Retract {
			mark = "-"
		}
		all = append(all, fmt.Sprintf("%s%s/%s@%d", mark, d.Publication.Dataset, d.Publication.Granule, d.Publication.Revision))
	}
	return all
}

// deliverAll ends every delivery to a sink in its order and returns them.
func deliverAll(t *testing.T, l *Ledger, sink string) []string {
	t.Helper()
	var all []string
	for {
		ds, err := l.Due(t.Context(), sink)
		must(t, err)
		if len(ds) == 0 {
			return all
		}
		all = append(all, due(t, l, sink)[0])
		must(t, l.EndDelivery(t.Context(), ds[0].ID, at(50)))
	}
}

func wantDue(t *testing.T, l *Ledger, sink string, want ...string) {
	t.Helper()
	if got := due(t, l, sink); !slices.Equal(got, want) {
		t.Errorf("due to %s: %v, want %v", sink, got, want)
	}
}

func TestStoringQueuesADeliveryToEverySinkInOrder(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	sendOut(t, l, "sst", "x.nc", "1", 2)
	g := sendOut(t, l, "chl", "a.nc", "2", 3)
	wantDue(t, l, "disk", "chl/a.nc@1", "sst/x.nc@1")
	// Storing again, as after a crash, queues nothing.
	must(t, l.StoreAndQueue(t.Context(), g.ID, outgoing(g, 3), at(4)))
	want := []string{"chl/a.nc@1", "sst/x.nc@1", "chl/a.nc@2"}
	if got := deliverAll(t, l, "disk"); !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	wantDue(t, l, "kafka", "chl/a.nc@1", "sst/x.nc@1")
	wantDue(t, l, "s3")
}

func TestAStoreThatIsRefusedQueuesNothing(t *testing.T) {
	l := outbox(t)
	g := sendOut(t, l, "chl", "a.nc", "1", 1)
	other := outgoing(g, 1)
	other.Product.SHA256 = "another"
	if err := l.StoreAndQueue(t.Context(), g.ID, other, at(2)); !errors.Is(err, ErrTransition) {
		t.Errorf("StoreAndQueue() = %v for another product under the same revision, want ErrTransition", err)
	}
	fresh := arriveNow(t, l, arrival("b.nc", "1"))
	if err := l.StoreAndQueue(t.Context(), fresh.ID, outgoing(fresh, 1), at(2)); !errors.Is(err, ErrTransition) {
		t.Errorf("StoreAndQueue() = %v for a granule that is not filled, want ErrTransition", err)
	}
	if got := deliverAll(t, l, "disk"); len(got) != 1 {
		t.Errorf("delivered %v, want the first product only", got)
	}
}

func TestGranuleIsAnnouncedWhenTheLastSinkHasIt(t *testing.T) {
	l := outbox(t)
	g := sendOut(t, l, "chl", "a.nc", "1", 1)
	for i, sink := range bothSinks {
		ds, err := l.Due(t.Context(), sink)
		must(t, err)
		must(t, l.EndDelivery(t.Context(), ds[0].ID, at(5)))
		must(t, l.EndDelivery(t.Context(), ds[0].ID, at(6))) // again, as after a crash
		now, err := byID(t.Context(), l.db, g.ID)
		must(t, err)
		if want := []State{Stored, Announced}[i]; now.State != want {
			t.Errorf("after %s the granule is %s, want %s", sink, now.State, want)
		}
	}
}

func TestFailureHoldsTheQueueAndSettingAsideReleasesIt(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	sendOut(t, l, "chl", "b.nc", "1", 2)
	ds, err := l.Due(t.Context(), "kafka")
	must(t, err)
	must(t, l.FailDelivery(t.Context(), ds[0].ID, "broker away", false, at(3)))
	must(t, l.FailDelivery(t.Context(), ds[0].ID, "broker still away", false, at(4)))
	wantDue(t, l, "kafka", "chl/a.nc@1")
	backlogs, err := l.Backlogs(t.Context())
	must(t, err)
	want := Backlog{Sink: "kafka", Waiting: 2, Bytes: 20, Oldest: at(1), Attempts: 2, Problem: "broker still away"}
	if len(backlogs) != 2 || backlogs[1] != want {
		t.Errorf("Backlogs() = %+v, want %+v beside that of disk", backlogs, want)
	}
	must(t, l.FailDelivery(t.Context(), ds[0].ID, "too large", true, at(5)))
	wantDue(t, l, "kafka", "chl/b.nc@1")
	aside, err := l.SetAside(t.Context(), 10)
	must(t, err)
	if len(aside) != 1 || aside[0].Problem != "too large" || aside[0].Attempts != 3 || !aside[0].Ended.Equal(at(5)) {
		t.Errorf("SetAside() = %+v", aside)
	}
	if n, err := l.RetryAside(t.Context(), "kafka", 0); n != 1 || err != nil {
		t.Errorf("RetryAside() = %d, %v", n, err)
	}
	wantDue(t, l, "kafka", "chl/a.nc@1") // back at its place in the queue
	if awaited, err := l.Awaited(t.Context(), "chl", "a.nc", 1); !awaited || err != nil {
		t.Errorf("Awaited() = %v, %v of a waiting delivery", awaited, err)
	}
}

func TestReplayQueuesTheNewestRevisionsOfARangeOnce(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	sendOut(t, l, "chl", "a.nc", "2", 1)
	sendOut(t, l, "chl", "b.nc", "1", 2)
	sendOut(t, l, "chl", "c.nc", "1", 3)
	sendOut(t, l, "sst", "x.nc", "1", 2)
	deliverAll(t, l, "kafka")
	r := Replay{Sinks: []string{"kafka"}, Dataset: "chl", From: at(1), To: at(2)}
	for i, want := range []int{2, 0} { // a waiting delivery is not queued again
		if n, err := l.QueueReplay(t.Context(), r, at(9)); n != want || err != nil {
			t.Errorf("replay %d queued %d, %v, want %d", i, n, err, want)
		}
	}
	want := []string{"chl/a.nc@2", "chl/b.nc@1"}
	if got := deliverAll(t, l, "kafka"); !slices.Equal(got, want) {
		t.Errorf("replayed %v, want %v", got, want)
	}
	if n, err := l.QueueReplay(t.Context(), Replay{Sinks: []string{"kafka"}}, at(9)); n != 4 || err != nil {
		t.Errorf("replay of everything queued %d, %v, want the 4 newest revisions", n, err)
	}
}

func TestRetractionFollowsItsPublicationAndIsNotReplayed(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	sendOut(t, l, "chl", "a.nc", "2", 1)
	r := Retraction{Granule: "a.nc", Why: "sensor fault", Sinks: bothSinks}
	gone, err := l.QueueRetraction(t.Context(), r, at(5))
	if err != nil || len(gone) != 2 || gone[1].Why != "sensor fault" {
		t.Errorf("QueueRetraction() = %+v, %v, want both revisions", gone, err)
	}
	want := []string{"chl/a.nc@1", "chl/a.nc@2", "-chl/a.nc@1", "-chl/a.nc@2"}
	if got := deliverAll(t, l, "kafka"); !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	if again, err := l.QueueRetraction(t.Context(), r, at(6)); err != nil || len(again) != 0 {
		t.Errorf("the second QueueRetraction() = %+v, %v, want nothing", again, err)
	}
	if n, err := l.QueueReplay(t.Context(), Replay{Sinks: bothSinks}, at(7)); n != 0 || err != nil {
		t.Errorf("replay brought %d retracted products back, %v", n, err)
	}
	if _, ok, err := l.Current(t.Context(), "chl", "a.nc"); ok || err != nil {
		t.Errorf("Current() = %v, %v of a retracted product", ok, err)
	}
	if _, err := l.QueueRetraction(t.Context(), Retraction{Granule: "z.nc", Why: "x"}, at(8)); !errors.Is(err, ErrNoPublication) {
		t.Errorf("QueueRetraction() = %v of a product never published", err)
	}
}

// A revision with another time goes to another place: the one before must not
// stay behind at its own.
func TestARevisionThatMovedTakesTheOneBeforeAway(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	before, ok, err := l.Current(t.Context(), "chl", "a.nc")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	a := arrival("a.nc", "2")
	a.Dataset = "chl"
	g := arriveNow(t, l, a)
	must(t, l.Advance(t.Context(), g.ID, Filled, at(30)))
	o := outgoing(g, 30)
	o.Moved = &before
	must(t, l.StoreAndQueue(t.Context(), g.ID, o, at(30)))
	want := []string{"chl/a.nc@1", "-chl/a.nc@1", "chl/a.nc@2"}
	if got := deliverAll(t, l, "disk"); !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}

func TestACommandCanJoinWhileTheDaemonIsAtWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if _, err := Join(t.Context(), path); err == nil || !strings.Contains(err.Error(), "made by") {
		t.Errorf("Join() = %v where there is no ledger", err)
	}
	l := open(t, path)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	deliverAll(t, l, "kafka")
	beside, err := Join(t.Context(), path)
	must(t, err)
	defer beside.Close()
	if n, err := beside.QueueReplay(t.Context(), Replay{Sinks: []string{"kafka"}}, at(9)); n != 1 || err != nil {
		t.Errorf("QueueReplay() = %d, %v beside the daemon", n, err)
	}
	wantDue(t, l, "kafka", "chl/a.nc@1")
}

func TestForgottenSinkHoldsNothingBack(t *testing.T) {
	l := outbox(t)
	sendOut(t, l, "chl", "a.nc", "1", 1)
	deliverAll(t, l, "disk")
	if n, err := l.ForgetSink(t.Context(), "kafka"); n != 1 || err != nil {
		t.Errorf("ForgetSink() = %d, %v", n, err)
	}
	if awaited, err := l.Awaited(t.Context(), "chl", "a.nc", 1); awaited || err != nil {
		t.Errorf("Awaited() = %v, %v after the sink was forgotten", awaited, err)
	}
}

// A queue of days must not make it slower to read its head.
func TestALongQueueCostsNoMoreThanAShortOne(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a large ledger")
	}
	l := outbox(t)
	g := sendOut(t, l, "chl", "a.nc", "1", 1)
	look := func() time.Duration {
		best := time.Hour
		for range 20 {
			start := time.Now()
			if got := due(t, l, "kafka"); len(got) != 1 {
				t.Fatalf("due %v", got)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	short := look()
	_, err := l.db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
		INSERT INTO publication (granule, dataset, name, revision, time, file, size, body, stored)
		SELECT ?, 'chl', 'g' || i, 1, '', 'f', 1, '{}', '' FROM n`, g.ID)
	must(t, err)
	_, err = l.db.ExecContext(t.Context(), `INSERT INTO delivery (sink, dataset, publication, kind, state, queued)
		SELECT 'kafka', dataset, id, 'publish', 'waiting', '' FROM publication WHERE name <> 'a.nc'`)
	must(t, err)
	const limit = 5 // times; a scan of the queue would be dozens
	if long := look(); long > limit*short {
		t.Errorf("the head of a line of 8000 took %v, of one %v", long, short)
	}
}

func TestJoiningWaitsForWhoeverLaysTheFileOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := sql.Open("sqlite", dataSource(path))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	must(t, apply(t.Context(), db, layout.Steps()[0], 1))
	if _, err := Join(t.Context(), path); err == nil || !strings.Contains(err.Error(), "layout 1") {
		t.Errorf("joining an old file that nobody works on: %v, want its layout", err)
	}
	working, err := takeLock(path + ".lock")
	must(t, err)
	t.Cleanup(func() { must(t, working.release()) })
	laidOut := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		laidOut <- migrate(context.Background(), db)
	}()
	l, err := Join(t.Context(), path)
	must(t, errors.Join(err, <-laidOut))
	must(t, l.Close())
}
