package daemon

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/publish/kafka/consumer"

	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	formerLayout = 4 // of the ledger of version 0.1
	formerSpoilt = "20240409_spoiled.nc"
)

// former is a service of version 0.1 that is being taken over by this version.
type former struct {
	cfg    Config
	broker *kfake.Cluster
}

// unpackFormer unpacks what testdata/former/make.sh has made and goes there: its
// paths are relative, so that it can lie anywhere.
func unpackFormer(t *testing.T) former {
	t.Helper()
	tarball, err := filepath.Abs("testdata/former/v0.1.tar.gz")
	if err == nil {
		_, err = os.Stat(tarball) // so that results are not cached when it changes
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", ".").Run() }) // versions of models may not be written to
	if said, err := exec.Command("tar", "xzf", tarball).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	cfg, err := LoadConfig("lacuna.yaml") // the configuration is read as it was
	if err != nil {
		t.Fatal(err)
	}
	cfg.Publish.Kafka.Brokers = broker.ListenAddrs()
	return former{cfg: cfg, broker: broker}
}

// workOff lets this version do what is to be done, and returns its log.
func (f former) workOff(t *testing.T) string {
	t.Helper()
	var said bytes.Buffer
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(f.cfg, Parts{Log: slog.New(slog.NewTextHandler(&said, nil)), Child: []string{self, "decode"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a product that was reopened may not be due yet
		if _, err := d.Once(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		time.Sleep(2 * f.cfg.Datasets[0].Reanalysis.Settle)
	}
	return said.String()
}

// promised returns the sha256 of every revision in the ledger.
func (f former) promised(t *testing.T) map[string]string {
	t.Helper()
	book, err := ledger.Open(t.Context(), f.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	all, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, p := range all {
		product := outbox.Delivery(ledger.Delivery{Publication: p}).Product
		sums[product.ID()] = product.SHA256
		if content, err := os.ReadFile(p.File); err != nil || hash(content) != product.SHA256 {
			t.Errorf("%s is not on the disk as it was promised: %v", product.ID(), err)
		}
	}
	return sums
}

// received returns the sha256 of every revision that a consumer is handed.
func (f former) received(t *testing.T) map[string]string {
	t.Helper()
	cfg := consumer.DefaultConfig()
	cfg.Connection, cfg.Once, cfg.Dir, cfg.Group = f.cfg.Publish.Kafka.Connection, true, t.TempDir(), fmt.Sprint("g", time.Now().UnixNano())
	sums := map[string]string{}
	c, err := consumer.New(cfg, func(_ context.Context, p consumer.Product) error {
		content, err := p.Bytes()
		if there, twice := sums[p.ID]; twice && there != hash(content) {
			t.Errorf("%s was received with two contents", p.ID)
		}
		sums[p.ID] = hash(content)
		return err
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sums
}

// rowsOf returns a table of a ledger as text, read without Lacuna.
func rowsOf(t *testing.T, path, query string) []string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var list []string
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

const formerRows = `SELECT name || ' ' || revision || ' ' || sha256 || ' ' || state || ' ' || product_sha256 FROM granule ORDER BY id`

// State, products and models of version 0.1 are taken over as they are: nothing
// is filled again, deliveries that waited go out, and what was asked for is done.
func TestWhatVersion01LeftGoesOn(t *testing.T) {
	f := unpackFormer(t)
	before := rowsOf(t, "state/ledger.db", `SELECT g.dataset || '/' || g.name || '/r' || g.revision FROM publication AS p JOIN granule AS g ON g.id = p.granule`)
	if layout := rowsOf(t, "state/ledger.db", "PRAGMA user_version"); !slices.Equal(layout, []string{fmt.Sprint(formerLayout)}) || len(before) == 0 {
		t.Fatalf("the state in testdata has layout %v and %d products", layout, len(before))
	}
	f.workOff(t)
	promised := f.promised(t)
	asked := "sea/20240402_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D.nc/r2" // with redo, under 0.1
	for _, id := range append(before, asked) {
		if promised[id] == "" {
			t.Errorf("%s is gone", id)
		}
	}
	if len(promised) != len(before)+1 {
		t.Errorf("products are %v, want those of 0.1 and the one that was asked for", slices.Sorted(maps.Keys(promised)))
	}
	if got := f.received(t); !maps.Equal(got, promised) {
		t.Errorf("a consumer has %v, the ledger %v", got, promised)
	}
	later, err := filepath.Glob("later/*.nc")
	if err != nil || len(later) != 1 {
		t.Fatal(later, err)
	}
	if err := os.Rename(later[0], filepath.Join("archive", filepath.Base(later[0]))); err != nil {
		t.Fatal(err)
	}
	f.workOff(t)
	if id := "sea/" + filepath.Base(later[0]) + "/r1"; f.promised(t)[id] == "" || f.received(t)[id] == "" {
		t.Errorf("%s came after the upgrade and is no product", id)
	}
	f.wantSetAside(t)
	champion, err := modelstore.New("models", time.Now).LoadChampion("sea")
	if err != nil || champion.Version.Card.Lacuna != "0.1" {
		t.Errorf("the champion of 0.1 does not serve: %v", err)
	}
}

// wantSetAside checks that the granule that 0.1 set aside still is.
func (f former) wantSetAside(t *testing.T) {
	t.Helper()
	book, err := ledger.Open(t.Context(), f.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	rows, err := book.Granules(t.Context(), ledger.GranuleQuery{Dataset: "sea", Name: formerSpoilt})
	if err != nil || len(rows) != 1 || rows[0].State != ledger.Quarantined || rows[0].Reason == "" {
		t.Errorf("%s is %+v, %v", formerSpoilt, rows, err)
	}
}

// The ledger of 0.1 is kept beside the one that was brought to the newest layout.
// Put back, it is what 0.1 had; the journal has what came since, so that nothing
// that was published meanwhile is made again under its number.
func TestTheWayBackFromAnUpgrade(t *testing.T) {
	f := unpackFormer(t)
	had := rowsOf(t, "state/ledger.db", formerRows)
	schema := rowsOf(t, "state/ledger.db", "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name")
	f.workOff(t)
	now := f.promised(t)
	kept := ledger.FormerLayout("state/ledger.db", formerLayout)
	if got := rowsOf(t, kept, formerRows); !slices.Equal(got, had) || len(had) < 4 {
		t.Errorf("the kept ledger has %v, that of 0.1 had %v", got, had)
	}
	if got := rowsOf(t, kept, "PRAGMA user_version"); !slices.Equal(got, []string{fmt.Sprint(formerLayout)}) {
		t.Errorf("the kept ledger has layout %v", got)
	}
	if got := rowsOf(t, kept, "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name"); !slices.Equal(got, schema) {
		t.Errorf("the kept ledger has other tables than that of 0.1")
	}
	if err := errors.Join(os.Rename(kept, "state/ledger.db"), removeIfThere("state/ledger.db-wal"), removeIfThere("state/ledger.db-shm")); err != nil {
		t.Fatal(err)
	}
	f.workOff(t)
	if again := f.promised(t); !maps.Equal(again, now) {
		t.Errorf("after the way back products are %v, before they were %v", again, now)
	}
	if got := f.received(t); !maps.Equal(got, now) {
		t.Errorf("a consumer has %v, the ledger %v", got, now)
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
