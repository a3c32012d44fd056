package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
)

// second returns another service with the same archive and the same sinks but its
// own state and, if wanted, its own folder of products.
func (b *bench) second(t *testing.T, ownProducts bool) *bench {
	t.Helper()
	other := *b
	other.log = &bytes.Buffer{}
	other.cfg.Web.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	root := t.TempDir()
	other.cfg.StateDir = filepath.Join(root, "state")
	if ownProducts {
		other.cfg.ProductsDir = filepath.Join(root, "products")
	}
	return &other
}

func TestASecondStateIsRefusedTheFolderOfProducts(t *testing.T) {
	a := newBench(t)
	a.plain()
	a.deliver(t, 1)
	a.once(t)
	before := writtenFiles(t, a.cfg.ProductsDir)
	b := a.second(t, false)
	_, err := b.daemon(t).Once(t.Context())
	if !errors.Is(err, publish.ErrForeign) || !strings.Contains(err.Error(), "lacuna publish takeover") || !strings.Contains(err.Error(), a.cfg.ProductsDir) {
		t.Fatalf("Once() = %v of a second state, want a sentence that says how to take over\n%s", err, b.log)
	}
	if err := b.daemon(t).Run(t.Context()); !errors.Is(err, publish.ErrForeign) {
		t.Errorf("Run() = %v of a second state", err)
	}
	if after := writtenFiles(t, a.cfg.ProductsDir); len(after) != len(before) {
		t.Errorf("the folder has %d files, had %d", len(after), len(before))
	}
	book, err := ledger.Join(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	if rows, err := book.Counts(t.Context()); err != nil || len(rows) > 0 {
		t.Errorf("the second state has taken the products of the first into its ledger: %v, %v", rows, err)
	}
	a.once(t) // the owner is not disturbed
}

func TestTwoDaemonsNeverWorkOnOneFolderOfProducts(t *testing.T) {
	a := newBench(t)
	a.plain()
	a.deliver(t, 1)
	d := a.daemon(t)
	stop := start(t, d)
	defer stop()
	until(t, "the first one to run", func() bool { return d.Addr() != "" })
	b := a.second(t, false)
	if _, err := b.daemon(t).Once(t.Context()); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("Once() = %v beside another on the folder, want ErrLocked", err)
	}
	if _, err := b.daemon(t).TakeOver(t.Context(), "test"); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("TakeOver() = %v under a daemon that runs, want ErrLocked", err)
	}
}

func TestASecondStateIsRefusedTheBucketAndTheTopics(t *testing.T) {
	a := allSinks(t)
	a.deliver(t, 1)
	a.once(t)
	b := a.second(t, true)
	b.deliver(t, 2)
	got, err := b.daemon(t).Once(t.Context())
	if got.Products != 1 || !errors.Is(err, publish.ErrForeign) || !strings.Contains(err.Error(), "lacuna publish takeover") {
		t.Fatalf("Once() = %+v, %v of a second state, want a product that waits\n%s", got, err, b.log)
	}
	for _, sink := range []string{"s3:products/tree", "kafka:lacuna"} {
		if s := b.publishStatus(t)[sink]; s.Waiting != 1 || s.Delivered != 0 {
			t.Errorf("%s has %+v", sink, s)
		}
	}
	if n := len(a.onTopic(t)); n != 1 {
		t.Errorf("%d events on the topic, want that of the first state", n)
	}
	a.wantOneHash(t, 1)
	b.wantFindings(t, map[string]bool{"owner of disk": true, "owner of s3:products/tree": false, "owner of kafka:lacuna": false})
	a.wantFindings(t, map[string]bool{"owner of disk": true, "owner of s3:products/tree": true, "owner of kafka:lacuna": true})
	stop := start(t, b.daemon(t))
	defer stop()
	until(t, "an alarm of each place", func() bool {
		all := b.alarms(t)
		_, topic := all["owner/kafka:lacuna"]
		_, bucket := all["owner/s3:products/tree"]
		return topic && bucket
	})
}

// wantFindings checks the findings of 'lacuna check --online'.
func (b *bench) wantFindings(t *testing.T, want map[string]bool) {
	t.Helper()
	found := map[string]operate.Finding{}
	if _, err := b.daemon(t).Station().Online(t.Context(), func(f operate.Finding) { found[f.What] = f }); err != nil {
		t.Fatal(err)
	}
	for what, ok := range want {
		if f, told := found[what]; !told || f.OK != ok {
			t.Errorf("check says %+v of %s (%v), want ok %v", f, what, told, ok)
		}
	}
}

func TestATakeoverGoesOnAboveAndFencesTheOtherOff(t *testing.T) {
	a := allSinks(t)
	a.cfg.Web.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	a.deliver(t, 1)
	d := a.daemon(t)
	stop := start(t, d)
	until(t, "it to run", func() bool { return d.Addr() != "" })
	until(t, "the first product everywhere", func() bool {
		for _, s := range a.publishStatus(t) {
			if s.Delivered != 1 {
				return false
			}
		}
		return true
	})
	b := a.second(t, true)
	done, err := b.daemon(t).TakeOver(t.Context(), "the first host is to go")
	if err != nil || len(done) != 3 || done[2].Was == "" || done[2].Was == done[2].State || done[2].Epoch != 2 {
		t.Fatalf("TakeOver() = %+v, %v", done, err)
	}
	journal, err := os.ReadFile(b.cfg.state().Ledger() + ".journal")
	if err != nil || !strings.Contains(string(journal), "the first host is to go") {
		t.Errorf("the journal does not say why: %s, %v", journal, err)
	}
	a.deliver(t, 2) // both services see it
	until(t, "the old one to store its product and to be refused", func() bool {
		all := a.publishStatus(t)
		return all["disk"].Delivered == 2 && all["kafka:lacuna"].Attempts > 0 && all["s3:products/tree"].Attempts > 0
	})
	b.once(t)
	if _, ok := a.alarms(t)["owner/kafka:lacuna"]; !ok {
		t.Errorf("the old one tells nobody: %v", a.alarms(t))
	}
	stop()
	b.wantOneHash(t, 2)
	if got := a.publishStatus(t)["kafka:lacuna"]; got.Delivered != 1 || got.Waiting != 1 {
		t.Errorf("the old one has delivered after it was fenced off: %+v", got)
	}
}

func TestAnOlderEpochOfTheSameStateDeliversNothing(t *testing.T) {
	oneByOne(t)
	b := allSinks(t)
	b.deliver(t, 1)
	b.once(t)
	restore := copyOf(t, b.cfg.StateDir)
	if _, err := b.daemon(t).TakeOver(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	b.once(t)
	restore()
	if _, err := b.daemon(t).Once(t.Context()); !errors.Is(err, publish.ErrForeign) || !strings.Contains(err.Error(), "epoch 2") {
		t.Errorf("Once() = %v of a copy from before the takeover", err)
	}
	if _, err := b.daemon(t).TakeOver(t.Context(), "it is the one to go on"); err != nil {
		t.Fatal(err)
	}
	b.once(t)
}

func TestAnExistingServiceMarksItsPlacesAtItsFirstStart(t *testing.T) {
	oneByOne(t)
	b := allSinks(t)
	b.deliver(t, 1)
	b.once(t)
	mark := filepath.Join(b.cfg.ProductsDir, ".lacuna-owner.json")
	if err := errors.Join(os.Remove(mark), os.Remove(b.cfg.state().Marked())); err != nil { // as an older version left it
		t.Fatal(err)
	}
	b.deliver(t, 2)
	b.once(t)
	if !exists(mark) {
		t.Error("the folder of products was not marked")
	}
	b.wantOneHash(t, 2)
}

// unmount leaves a bare folder where one was, as below a disk that is not mounted. The
// returned function mounts it again, and hides what the bare one has got.
func unmount(t *testing.T, folder string) (mount func()) {
	t.Helper()
	away := folder + ".away"
	if err := errors.Join(os.Rename(folder, away), os.Mkdir(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.RemoveAll(folder), os.Rename(away, folder)); err != nil {
			t.Fatal(err)
		}
	}
}

// A service starts before the disk of its products is mounted: it waits, and neither
// marks the bare folder nor rebuilds its ledger from it.
func TestAServiceWaitsForItsProductsToBeMounted(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.cfg.Publish.RetryMin = 10 * time.Millisecond
	b.deliver(t, 1)
	b.once(t)
	products := b.cfg.ProductsDir
	mount := unmount(t, products)
	b.wantFindings(t, map[string]bool{"owner of disk": false})
	if _, err := b.daemon(t).Rebuild(t.Context()); !errors.Is(err, publish.ErrAway) {
		t.Errorf("Rebuild() = %v, want ErrAway", err)
	}
	b.deliver(t, 2)
	if _, err := b.daemon(t).Once(t.Context()); !errors.Is(err, publish.ErrAway) || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("Once() = %v after a rebuilding that was not possible, want ErrAway", err)
	}
	if left, err := os.ReadDir(products); err != nil || len(left) > 0 {
		t.Errorf("the bare folder has %v, %v", left, err)
	}
	mount()
	b.once(t)
	mount = unmount(t, products)
	b.deliver(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said journal
	d, err := New(b.cfg, Parts{Log: slog.New(slog.NewTextHandler(&said, nil)), Child: []string{self, "decode"}})
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, d)
	until(t, "a granule that waits", func() bool { return said.says("granules left unfinished") && said.says("is its disk mounted?") })
	if left, err := os.ReadDir(products); err != nil || len(left) > 0 {
		t.Errorf("the bare folder has %v, %v", left, err)
	}
	mount()
	until(t, "three products", func() bool { return b.publishStatus(t)["disk"].Delivered == 3 })
	stop()
}

// The same of Zarr stores on a disk of their own: what was delivered to the bare folder
// would be missing when the disk is back.
func TestAServiceWaitsForItsZarrStoresToBeMounted(t *testing.T) {
	b := newBench(t)
	b.plain()
	stores := filepath.Join(t.TempDir(), "zarr")
	b.cfg.Publish.Zarr = &outbox.Zarr{Dir: stores}
	b.cfg.Publish.RetryMin = 10 * time.Millisecond
	b.deliver(t, 1)
	b.once(t)
	mount := unmount(t, stores)
	b.wantFindings(t, map[string]bool{"owner of disk": true, "owner of zarr": false})
	b.deliver(t, 2)
	stop := start(t, b.daemon(t))
	until(t, "a second product in the folder", func() bool { return b.publishStatus(t)["disk"].Delivered == 2 })
	until(t, "an attempt", func() bool { return strings.Contains(b.publishStatus(t)["zarr"].Problem, "mounted") })
	if files := writtenFiles(t, stores); len(files) > 0 {
		t.Errorf("below the mount there are %v", files)
	}
	mount()
	until(t, "two products in the store", func() bool { return b.publishStatus(t)["zarr"].Delivered == 2 })
	stop()
}

// A sink reads products from their folder: while that is away its deliveries wait, and
// are not set aside for want of a file.
func TestDeliveriesWaitForProductsThatAreNotMounted(t *testing.T) {
	b := newBench(t)
	b.plain()
	stores := filepath.Join(t.TempDir(), "zarr")
	b.cfg.Publish.Zarr = &outbox.Zarr{Dir: stores}
	b.cfg.Publish.RetryMin = 10 * time.Millisecond
	if err := os.WriteFile(stores, nil, 0o600); err != nil { // no folder: the delivery fails
		t.Fatal(err)
	}
	b.deliver(t, 1)
	if _, err := b.daemon(t).Once(t.Context()); err == nil {
		t.Fatal("the delivery has not failed")
	}
	if got := b.publishStatus(t)["zarr"]; got.Waiting != 1 {
		t.Fatalf("the store has %+v", got)
	}
	products := b.cfg.ProductsDir
	mount := unmount(t, products)
	if err := os.Remove(stores); err != nil {
		t.Fatal(err)
	}
	stop := start(t, b.daemon(t))
	until(t, "an attempt without products", func() bool {
		got := b.publishStatus(t)["zarr"]
		return got.Aside > 0 || strings.Contains(got.Problem, "mounted")
	})
	if got := b.publishStatus(t)["zarr"]; got.Aside > 0 {
		t.Errorf("the store has %+v: the delivery was set aside", got)
	}
	mount()
	until(t, "the delivery", func() bool { return b.publishStatus(t)["zarr"].Delivered == 1 })
	stop()
}

// An operator has emptied the folder of products on purpose, and says so.
func TestAFolderThatWasEmptiedIsTakenOver(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.deliver(t, 1)
	b.once(t)
	if err := errors.Join(os.RemoveAll(b.cfg.ProductsDir), os.Mkdir(b.cfg.ProductsDir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.daemon(t).TakeOver(t.Context(), "the disk is a new one"); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 2)
	b.once(t)
	if got := b.publishStatus(t)["disk"]; got.Delivered != 2 {
		t.Errorf("after a takeover the folder has %+v", got)
	}
}

func TestTheIdentityLastsThroughARebuilding(t *testing.T) {
	oneByOne(t)
	b := allSinks(t)
	b.deliver(t, 1)
	b.once(t)
	if _, err := b.daemon(t).Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 2)
	b.once(t)
	b.wantOneHash(t, 2)
}

func TestASinkThatIsAwayDoesNotHoldUpTheStart(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.kafkaOn(1) // nobody listens there
	b.cfg.Publish.RetryMin = 10 * time.Millisecond
	b.deliver(t, 1)
	stop := start(t, b.daemon(t))
	defer stop()
	until(t, "a ledger", func() bool { return exists(b.cfg.state().Ledger()) })
	until(t, "a product in the folder", func() bool { return b.publishStatus(t)["disk"].Delivered == 1 })
	if got := b.publishStatus(t)["kafka:lacuna"]; got.Waiting != 1 {
		t.Errorf("kafka has %+v", got)
	}
}

// Nobody delivers to a place whose marker cannot be read, until an operator takes
// it over.
func TestADamagedMarkStopsDeliveriesUntilATakeover(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.deliver(t, 1)
	b.once(t)
	if err := os.WriteFile(filepath.Join(b.cfg.ProductsDir, ".lacuna-owner.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.daemon(t).Once(context.Background()); !errors.Is(err, publish.ErrMarker) {
		t.Fatalf("Once() = %v with a damaged mark", err)
	}
	if _, err := b.daemon(t).TakeOver(t.Context(), "the mark was damaged"); err != nil {
		t.Fatal(err)
	}
	b.once(t)
}

// Anybody who can write to the topic can claim any revision there; it must not
// lift our numbers to where integers overflow.
func TestARevisionThatNobodyCanHaveMadeLiftsNoNumbers(t *testing.T) {
	oneByOne(t)
	b := allSinks(t)
	granule := b.deliver(t, 1)
	b.once(t)
	day := time.Date(2024, 4, 2, 0, 0, 0, 0, time.UTC)
	m := publish.Manifest{Dataset: "sea", Day: publish.Day(day.AddDate(0, 1, 0)), Products: []publish.Entry{{
		Granule: granule, File: "x.nc", Revision: math.MaxInt, Time: day.AddDate(0, 1, 0), SHA256: "x",
	}}}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(b.cfg.ProductsDir, "sea", "2024", "05")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, publish.ManifestName(day.AddDate(0, 1, 0))), text, 0o600); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 2)
	if got := b.once(t); got.Products != 1 {
		t.Fatalf("Once() = %+v\n%s", got, b.log)
	}
	if got := b.onTopic(t); got[len(got)-1].Revision != 2 {
		t.Errorf("the next revision is %d, want 2", got[len(got)-1].Revision)
	}
}
