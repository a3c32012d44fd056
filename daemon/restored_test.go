package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/work"
	"lacuna/publish"
	"lacuna/publish/disk"
)

func TestAStateRestoredFromAnOlderCopyGoesOnAboveWhatWasPublished(t *testing.T) {
	oneByOne(t)
	for _, tt := range []struct {
		name     string
		products bool // the folder of products is restored as well
		alarm    []string
	}{
		{"the state alone", false, []string{"restored/disk"}},
		{"the state and its products", true, []string{"restored/s3:products/tree", "restored/kafka:lacuna"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := allSinks(t)
			b.deliver(t, 1)
			b.once(t)
			restoreState, restoreProducts := copyOf(t, b.cfg.StateDir), copyOf(t, b.cfg.ProductsDir)
			b.deliver(t, 2)
			b.once(t)
			b.wantOneHash(t, 2)
			restoreState()
			if tt.products {
				restoreProducts()
			}
			b.deliver(t, 3)
			b.once(t)
			b.wantOneHash(t, 3)
			if !strings.Contains(b.log.String(), "THE STATE IS OLDER THAN WHAT WAS PUBLISHED") {
				t.Errorf("nobody was told:\n%s", b.log)
			}
			for _, key := range tt.alarm {
				if _, ok := b.alarms(t)[key]; !ok {
					t.Errorf("no alarm %s: %v", key, b.alarms(t))
				}
			}
			b.log.Reset()
			if got := b.once(t); got != (work.Summary{}) || strings.Contains(b.log.String(), "OLDER") {
				t.Errorf("the next pass has something to do: %+v\n%s", got, b.log)
			}
		})
	}
}

// The folder of products and the state are restored from a copy while the topic
// and the bucket are away, and other bytes get a revision that these have.
func TestAConflictWithASinkThatWasAwayIsResolvedAndTold(t *testing.T) {
	oneByOne(t)
	for _, lost := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d revisions were lost", lost), func(t *testing.T) { conflictWithSinkAway(t, lost) })
	}
}

func conflictWithSinkAway(t *testing.T, lost int) {
	b := allSinks(t)
	b.deliver(t, 1)
	b.once(t)
	restoreState, restoreProducts := copyOf(t, b.cfg.StateDir), copyOf(t, b.cfg.ProductsDir)
	var granule string
	for i := range lost {
		granule = b.deliver(t, uint64(2+i))
		b.once(t)
	}
	theirs := slices.Collect(maps.Keys(b.said(t)[2]))[0]
	restoreState()
	restoreProducts()
	b.deliver(t, 9)
	brokers, endpoint := b.cfg.Publish.Kafka.Brokers, b.cfg.Publish.S3.Endpoint
	b.cfg.Publish.Kafka.Brokers, b.cfg.Publish.S3.Endpoint = []string{"127.0.0.1:1"}, "http://127.0.0.1:1"
	away, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if got, err := b.daemon(t).Once(away); err == nil || got.Products != 1 {
		t.Fatalf("Once() = %+v, %v with two sinks away, want a product and what waits\n%s", got, err, b.log)
	}
	b.cfg.Publish.Kafka.Brokers, b.cfg.Publish.S3.Endpoint = brokers, endpoint
	ours := ""
	if err := (disk.Store{Root: b.cfg.ProductsDir}).Manifests(t.Context(), time.Time{}, func(m publish.Manifest) error {
		e, _ := m.Entry(granule)
		ours = e.SHA256
		return nil
	}); err != nil || ours == theirs {
		t.Fatalf("the test is of no use: both have %s, %v", ours, err)
	}
	b.once(t)
	b.once(t) // the next pass resolves a conflict that was met at the end of one
	b.wantOneHash(t, 2+lost)
	for _, sink := range []string{"s3:products/tree", "kafka:lacuna"} {
		a, ok := b.alarms(t)["conflict/"+sink]
		if !ok {
			// The sink that was compared first has displaced the revision for both.
			a, ok = b.alarms(t)["restored/"+sink]
			if !ok || !strings.Contains(a.Summary, granule) {
				t.Errorf("no alarm of %s: %v", sink, b.alarms(t))
			}
			continue
		}
		for _, part := range []string{granule, sink, ours, theirs} {
			if part == theirs && lost > 1 {
				continue // a compacted topic does not keep superseded revisions
			}
			if !strings.Contains(a.Summary, part) {
				t.Errorf("the alarm does not say %s: %s", part, a.Summary)
			}
		}
	}
	if !strings.Contains(b.log.String(), "ONE REVISION HAS TWO FILES") {
		t.Errorf("nobody was told:\n%s", b.log)
	}
}

// A crash came after the file of a revision was sealed and before the ledger
// knew of it; by now a neighbour makes another product of the granule.
func TestASealedFileThatTheLedgerDoesNotKnowKeepsItsNumber(t *testing.T) {
	b := allSinks(t)
	b.deliver(t, 1)
	b.once(t)
	restoreState := copyOf(t, b.cfg.StateDir)
	b.deliver(t, 2)
	b.once(t)
	hidden, err := filepath.Glob(filepath.Join(b.cfg.ProductsDir, "sea", ".revisions", "*", "*", "*_r2_*"))
	if err != nil || len(hidden) != 1 {
		t.Fatal(hidden, err)
	}
	sealed, err := os.ReadFile(hidden[0])
	if err != nil {
		t.Fatal(err)
	}
	// No receiver has seen it: only the file of the revision is there.
	restoreState()
	b.bucketOn(t)
	b.kafkaOn(broker(t, 0))
	if err := errors.Join(os.RemoveAll(b.cfg.ProductsDir), os.MkdirAll(filepath.Dir(hidden[0]), 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.daemon(t).TakeOver(t.Context(), "the folder was emptied"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hidden[0], sealed, 0o444); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 3)
	b.once(t)
	b.wantOneHash(t, 3)
	if _, err := b.daemon(t).Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.once(t); got != (work.Summary{}) {
		t.Errorf("after a rebuilding Once() = %+v: what went on under a later number is made again", got)
	}
	b.wantOneHash(t, 3)
	if after, err := os.ReadFile(hidden[0]); err != nil || string(after) != string(sealed) {
		t.Errorf("the sealed file of revision 2 has changed (%v)", err)
	}
}

// A start does not read unchanged products: neither their files nor their rows in
// the ledger.
func TestAStartWithManyProductsDoesNotLookAtThoseThatDidNotChange(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.deliver(t, 1)
	b.once(t)
	root := filepath.Join(b.cfg.ProductsDir, "sea")
	many := 2000
	if os.Getenv("LACUNA_LONG") != "" {
		many = 100_000
	}
	long := time.Now().AddDate(-1, 0, 0)
	for i := range many {
		day := time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i)
		folder := filepath.Join(root, day.Format("2006"), day.Format("01"))
		// If this file were read, it would be ahead of the ledger.
		m := publish.Manifest{Dataset: "sea", Day: publish.Day(day), Products: []publish.Entry{{
			Granule: fmt.Sprintf("%d.nc", i), File: fmt.Sprintf("%d_l4.nc", i), Revision: 1, Time: day, SHA256: strconv.Itoa(i),
		}}}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, publish.ManifestName(day))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	d := b.daemon(t)
	book, err := d.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	began := time.Now()
	out, err := d.openOutbox(t.Context(), book)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	t.Logf("%d products that did not change: looked at in %v", many, time.Since(began))
	if strings.Contains(b.log.String(), "OLDER") {
		t.Errorf("manifests that did not change were read:\n%s", b.log)
	}
}
