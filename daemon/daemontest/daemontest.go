// Package daemontest tells in tests whether what a daemon has published is the same
// wherever it can be looked up: each revision with one sha256 in the ledger, in the
// folder of products and in the topic. It does not know how it came there.
package daemontest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"
)

// Site is where a daemon with the sinks disk and kafka keeps what it publishes.
type Site struct {
	Ledger   string // its file
	Products string // the folder
	Store    disk.Store
	Topic    kafka.Connection
}

// WantAgreement compares the folder of products and the topic with the ledger.
func (s Site) WantAgreement(t testing.TB, rows []Row) {
	t.Helper()
	s.wantFilesAgree(t, rows)
	s.wantTopicAgrees(t, rows)
}

// Row is a revision as the ledger knows it.
type Row struct {
	publish.Product
	Retracted bool
}

// Rows returns every revision that the ledger knows, oldest first,
// and fails where one is not delivered.
func (s Site) Rows(t testing.TB) []Row {
	t.Helper()
	book, err := ledger.Open(t.Context(), s.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	backlogs, err := book.Backlogs(t.Context())
	if err != nil || len(backlogs) != 2 {
		t.Fatalf("Backlogs() = %+v, %v, want two sinks", backlogs, err)
	}
	for _, b := range backlogs {
		if b.Waiting != 0 || b.Aside != 0 {
			t.Errorf("sink %s is behind: %+v", b.Sink, b)
		}
	}
	counts, err := book.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, c := range counts {
		total += c.Granules
		if c.State != ledger.Announced {
			t.Errorf("%d granules of %s are %s", c.Granules, c.Dataset, c.State)
		}
	}
	recent, err := book.Recent(t.Context(), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range recent { // days without a granule have products too
		switch {
		case g.Absent && g.State == ledger.Announced:
			total++
		case g.Absent && g.State != ledger.Quarantined: // there the granule came first
			t.Errorf("the absence %s is %s", g.Name, g.State)
		}
	}
	published, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(published) != total {
		t.Errorf("%d publications of %d granules", len(published), total)
	}
	return convert.Each(published, func(p ledger.Publication) Row {
		d := outbox.Delivery(ledger.Delivery{Publication: p})
		return Row{Product: d.Product, Retracted: !p.Retracted.IsZero()}
	})
}

// wantFilesAgree compares the folder of products with the ledger.
func (s Site) wantFilesAgree(t testing.TB, rows []Row) {
	t.Helper()
	newest := map[string]Row{}
	for _, r := range rows {
		if content, err := os.ReadFile(r.Path); err != nil || Hash(content) != r.SHA256 {
			t.Errorf("%s: the revision's own file is not what was promised: %v", r.ID(), err)
		}
		if r.Revision > newest[r.Key()].Revision {
			newest[r.Key()] = r
		}
	}
	listed := map[string]publish.Entry{}
	manifests, _ := filepath.Glob(filepath.Join(s.Products, "*", "*", "*", "*.manifest.json"))
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := publish.ParseManifest(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Products {
			listed[m.Dataset+"/"+e.Granule] = e
		}
	}
	for key, r := range newest {
		e := listed[key]
		visible, _ := s.Store.Visible(r.Dataset, r.Time, r.Name)
		content, err := os.ReadFile(visible)
		switch {
		case e.Revision != r.Revision || e.Retracted != r.Retracted:
			t.Errorf("%s: manifest has revision %d, retracted %v; ledger %d, %v", key, e.Revision, e.Retracted, r.Revision, r.Retracted)
		case r.Retracted && !errors.Is(err, os.ErrNotExist):
			t.Errorf("%s: retracted and still there: %v", key, err)
		case !r.Retracted && (err != nil || Hash(content) != r.SHA256 || !e.Live()):
			t.Errorf("%s: file has %s, ledger %s, %v", key, Hash(content), r.SHA256, err)
		}
		want := ""
		if r.Members != nil && !r.Retracted {
			want = r.Members.SHA256
		}
		members, err := os.ReadFile(publish.MembersName(visible))
		if (want == "") != errors.Is(err, os.ErrNotExist) || want != "" && Hash(members) != want || (e.Members != nil) != (want != "") {
			t.Errorf("%s: the members have %s, %v, the manifest %+v; ledger %q", key, Hash(members), err, e.Members, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.Products, "*", "*", "*", ".put-*")); len(left) > 0 || len(listed) != len(newest) {
		t.Errorf("%d products are listed, %d known; left behind: %v", len(listed), len(newest), left)
	}
}

// wantTopicAgrees reads the topics as a consumer does, and compares them with the
// ledger: every revision once, in order, byte for byte, and every retraction.
func (s Site) wantTopicAgrees(t testing.TB, rows []Row) {
	t.Helper()
	reader := consumer.DefaultConfig()
	reader.Connection, reader.Once, reader.Dir = s.Topic, true, t.TempDir()
	received := map[string][]string{} // events by dataset, in order
	retracted := map[string]int{}
	c, err := consumer.New(reader, func(_ context.Context, p consumer.Product) error {
		id := fmt.Sprintf("%s/%s/r%d", p.Dataset, p.Granule, p.Revision)
		if p.Retracted {
			retracted[id]++
			return nil
		}
		content, err := p.Bytes()
		if err != nil {
			return err
		}
		received[p.Dataset] = append(received[p.Dataset], id+" "+Hash(content))
		return nil
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dataset := range []string{"chl", "sst"} {
		var want []string
		for _, r := range rows {
			if r.Dataset == dataset {
				want = append(want, r.ID()+" "+r.SHA256)
			}
		}
		if got := received[dataset]; !slices.Equal(got, want) {
			t.Errorf("consumer of %s was handed %d products, the ledger has %d; first difference at %d", dataset, len(got), len(want), differ(got, want))
		}
	}
	for _, r := range rows {
		if got := retracted[r.ID()]; r.Retracted && got != 1 {
			t.Errorf("consumer was told %d times that %s is retracted, want once", got, r.ID())
		}
	}
}

func differ(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// Hash returns the sha256 of content.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
