package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/books"
	"lacuna/daemon/operate"
	"lacuna/daemon/work"
	"lacuna/fetch"
	"lacuna/ledger"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"
)

// shelf is a service with granules in every state: products, one of them of a
// second revision and one retracted, a granule that was set aside, and one that
// was fetched and not filled.
func shelf(t *testing.T, port int) *bench {
	t.Helper()
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Members = 2
	b.kafkaOn(port)
	set := &b.cfg.Datasets[0]
	set.Fill.Method, set.Fill.FutureDays, set.DailySkill = "persistence", 0, false
	w := world(t, 24, 32)
	days := firstVersions(w, 5)
	for _, d := range days[:4] {
		put(t, b.archive(), w.Granule(d))
	}
	if err := os.WriteFile(filepath.Join(b.archive(), "20240609_page.nc"), []byte("<html>404</html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.once(t); got.Products != 4 || got.SetAside != 1 {
		t.Fatalf("Once() = %+v\n%s", got, b.log)
	}
	b.operate(t, func(o *operate.Operations) error {
		_, err := o.Redo(t.Context(), operate.RedoRequest{Selection: operate.Selection{Names: []string{days[0].Name}}, Why: "test"})
		return err
	})
	b.once(t)
	p, err := operate.JoinPublications(t.Context(), b.cfg.Operate())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Retract(t.Context(), operate.Selection{Names: []string{days[1].Name}}, "sensor fault"); err != nil {
		t.Fatal(err)
	}
	p.Close()
	b.once(t)
	put(t, b.archive(), w.Granule(days[4]))
	if _, err := b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{Days: fetch.Days{}}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) operate(t *testing.T, do func(*operate.Operations) error) {
	t.Helper()
	o, err := operate.Join(t.Context(), b.cfg.Operate())
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := do(o); err != nil {
		t.Fatal(err)
	}
}

// events counts the messages on the topic of events, repetitions included.
func events(t *testing.T, port int) int64 {
	t.Helper()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	partitions, err := kafkago.LookupPartitions(ctx, "tcp", addr, "lacuna.events")
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, p := range partitions {
		c, err := kafkago.DialLeader(ctx, "tcp", addr, "lacuna.events", p.ID)
		if err != nil {
			t.Fatal(err)
		}
		last, err := c.ReadLastOffset()
		if err != nil {
			t.Fatal(err)
		}
		total += last
		c.Close()
	}
	return total
}

// standing returns the granules and products of the ledger, without times and row
// numbers.
func (b *bench) standing(t *testing.T) []string {
	t.Helper()
	book, err := ledger.Join(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	rows, err := book.Recent(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, g := range rows {
		all = append(all, fmt.Sprintf("%s@%d %s %s %v %v product %s recorded %v %s", g.Name, g.Revision, g.State, g.SHA256, g.First, g.Last,
			g.Product.SHA256, g.Recorded, g.Why))
	}
	published, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range published {
		all = append(all, fmt.Sprintf("published %s@%d %v %s %s", p.Granule, p.Revision, p.Time, p.File, p.Why))
	}
	slices.Sort(all)
	return all
}

// writtenFiles returns the files below a folder with their content and their
// inodes' times, which show whether one was written again.
func writtenFiles(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		all[path] = fmt.Sprintf("%s %v", hash(content), info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// faults are the ways in which a ledger can be damaged or lost.
func ledgerFaults(random *rand.Rand, n int) []ledgerFault {
	all := []ledgerFault{
		{"deleted", func(path string) error { return os.Remove(path) }},
		{"emptied", func(path string) error { return os.Truncate(path, 0) }},
		{"deleted with its journal", func(path string) error { return removeAllOf(path, "", ".journal", ".journal.cursor") }},
		{"deleted with how far its journal has come", func(path string) error { return removeAllOf(path, "", ".journal.cursor") }},
		{"replaced by text", func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("no ledger ", 2000)), 0o600) }},
	}
	for range n {
		share := random.Float64()
		all = append(all, ledgerFault{fmt.Sprintf("cut off at %.3f", share), func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, int64(share*float64(info.Size())))
		}})
		at, length := random.Float64(), 1+random.IntN(6000)
		noise := make([]byte, length)
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		all = append(all, ledgerFault{fmt.Sprintf("%d bytes of noise at %.3f", length, at), func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			from := int64(at * float64(info.Size()))
			_, err = f.WriteAt(noise[:min(int64(len(noise)), info.Size()-from)], from)
			return err
		}})
	}
	return all
}

type ledgerFault struct {
	name   string
	befall func(path string) error
}

func removeAllOf(path string, endings ...string) error {
	for _, ending := range endings {
		if err := os.Remove(path + ending); err != nil {
			return err
		}
	}
	return nil
}

// Whatever happens to the ledger, the next start restores it from the disk:
// nothing is filled or published twice, nothing is lost, and the waiting granule
// is filled.
func TestALedgerThatIsLostIsMadeAnewAndNothingIsDoneTwice(t *testing.T) {
	rounds := 4
	switch {
	case testing.Short():
		rounds = 1
	case os.Getenv("LACUNA_LONG") != "":
		rounds = 40
	}
	port := broker(t, 0)
	b := shelf(t, port)
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(b.cfg.StateDir)); err != nil {
		t.Fatal(err)
	}
	// A start without a fault fills the waiting granule.
	if got := b.once(t); got.Products != 1 {
		t.Fatalf("Once() = %+v\n%s", got, b.log)
	}
	want, told, files := b.standing(t), events(t, port), writtenFiles(t, b.cfg.ProductsDir)
	random := rand.New(rand.NewPCG(7, 7))
	rebuilt := 0
	for _, fault := range ledgerFaults(random, rounds) {
		b.log.Reset()
		if err := os.RemoveAll(b.cfg.StateDir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(b.cfg.StateDir, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
		if err := fault.befall(b.cfg.state().Ledger()); err != nil {
			t.Fatal(err)
		}
		got, err := b.daemon(t).Once(t.Context())
		if err != nil || got.Unfinished > 0 {
			t.Errorf("%s: Once() = %+v, %v\n%s", fault.name, got, err, b.log)
			continue
		}
		if strings.Contains(b.log.String(), "ledger made anew") {
			rebuilt++
		}
		if n := events(t, port); n != told {
			t.Errorf("%s: %d events were sent again\n%s", fault.name, n-told, b.log)
			told = n
		}
		if diff := cmp.Diff(files, writtenFiles(t, b.cfg.ProductsDir)); diff != "" {
			t.Errorf("%s: products changed (-before +after):\n%s", fault.name, diff)
		}
		b.wantStanding(t, fault.name, want)
	}
	if rebuilt < 5 {
		t.Errorf("only %d ledgers were made anew: the faults are too small to test anything", rebuilt)
	}
	t.Logf("%d faults, %d ledgers made anew", 5+2*rounds, rebuilt)
}

// wantStanding compares the ledger with its former content. Without the journal
// only the current revisions can be restored, from the products.
func (b *bench) wantStanding(t *testing.T, fault string, want []string) {
	t.Helper()
	got := b.standing(t)
	if fault != "deleted with its journal" {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the ledger differs (-before +after):\n%s\n%s", fault, diff, b.log)
		}
		return
	}
	for _, line := range got {
		if strings.HasPrefix(line, "published") && !slices.Contains(want, line) {
			t.Errorf("%s: the ledger invents %s", fault, line)
		}
	}
	if n := len(got); n < 8 {
		t.Errorf("%s: the ledger has only %d lines:\n%s", fault, n, strings.Join(got, "\n"))
	}
}

func TestADamagedLedgerEndsTheDaemonAndTheNextMakesItAnew(t *testing.T) {
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method = "persistence"
	deliverDays(t, b, 2)
	b.once(t)
	if err := os.WriteFile(books.SuspectPath(b.cfg.state().Ledger()), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.once(t); got != (work.Summary{}) || books.Suspected(b.cfg.state().Ledger()) {
		t.Errorf("a ledger that was suspected and is whole: %+v, still suspected %v", got, books.Suspected(b.cfg.state().Ledger()))
	}
	if strings.Contains(b.log.String(), "anew") {
		t.Errorf("a whole ledger was made anew:\n%s", b.log)
	}
}

func TestTheJournalHasWhatCameAndALineThatWasCutOffDoesNoHarm(t *testing.T) {
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method, b.cfg.Datasets[0].DailySkill = "persistence", false
	deliverDays(t, b, 2)
	b.once(t)
	journal := b.cfg.state().Ledger() + ".journal"
	before, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	b.once(t) // no granule has come
	if after, err := os.ReadFile(journal); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a pass without news wrote to the journal: %d bytes, were %d, %v", len(after), len(before), err)
	}
	if err := os.WriteFile(journal, append(before, `{"dataset":"sea","na`...), 0o600); err != nil {
		t.Fatal(err)
	}
	b.operate(t, func(o *operate.Operations) error { return o.RedoDay(t.Context(), "", firstDay(t, b), "test") })
	b.once(t)
	revisions := 0
	for f, err := range ledger.Journal(b.cfg.state().Ledger()) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Revision == 2 && f.Publication != nil {
			revisions++
		}
	}
	if revisions != 1 {
		t.Errorf("the journal has %d second revisions behind the line that was cut off, want 1", revisions)
	}
}

// firstDay returns the day of the first product of b.
func firstDay(t *testing.T, b *bench) time.Time {
	t.Helper()
	book, err := ledger.Join(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	all, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
	if err != nil || len(all) == 0 {
		t.Fatal(err, len(all))
	}
	return all[0].Time
}
