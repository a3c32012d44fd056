package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/ops"
)

func TestRunServesAndStopsCleanly(t *testing.T) {
	b := newBench(t)
	b.cfg.Datasets[0].Simulate = &feed.Feed{Product: "blk-chl", Grid: feed.Size{Height: 40, Width: 60}, Seed: 1, BacklogDays: 2, Interval: 20 * time.Millisecond}
	d := b.daemon(t)
	stop := start(t, d)
	var status ops.Status
	deadline := time.Now().Add(3 * time.Minute)
	for len(status.Products) < 3 {
		if time.Now().After(deadline) {
			t.Fatalf("three products did not appear; status %+v", status)
		}
		time.Sleep(50 * time.Millisecond) // polls a real server on a real port
		if d.Addr() == "" {
			continue
		}
		status = fetchStatus(t, d.Addr())
	}
	stop()
	p := status.Products[0]
	if p.FilledAfter <= p.ObservedBefore || p.FilledAfter < 0.99 {
		t.Errorf("product %+v, want the sea filled", p)
	}
	if files := b.products(t); len(files) < 3 {
		t.Errorf("%d files after the stop, want the products that the page showed", len(files))
	}
}

func fetchStatus(t *testing.T, addr string) ops.Status {
	t.Helper()
	res, err := http.Get("http://" + addr + "/status.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var s ops.Status
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return s
}
