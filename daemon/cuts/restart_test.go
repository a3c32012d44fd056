package cuts

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/cli/files"
	"lacuna/daemon/quarantine"
	"lacuna/daemon/state"
	"lacuna/daemon/work"
	"lacuna/ledger"
	"lacuna/publish/kafka"
)

// restart starts the service again on what a cut has left, with a broker that
// knows what it was told, and checks that it comes to the end that it would have
// come to.
func (c *checker) restart(t *testing.T, marks []any) {
	t.Helper()
	broker, err := remake(t.Context(), marks)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	path, err := c.configure(broker.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.workOff(t, path); err != nil {
		c.found("the service does not start again: %v", err)
		return
	}
	if err := consume(t, broker.ListenAddrs()[0], c.consumed()); err != nil {
		c.found("the consumer does not start again: %v", err)
		return
	}
	c.topics, err = readTopics(t.Context(), broker) // they are the truth from now on
	if err != nil {
		t.Fatal(err)
	}
	events := eventsIn(t, c.topics[kafka.EventsTopic(prefix)])
	c.ledger(t.Context(), events)
	c.products()
	c.oneSumEach(events)
	c.complete(t, events)
	c.tidy()
}

// workOff lets a daemon do everything that is to be done.
func (c *checker) workOff(t *testing.T, config string) error {
	t.Helper()
	cfg, err := daemon.LoadConfig(config)
	if err != nil {
		return err
	}
	var said strings.Builder
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := daemon.New(cfg, daemon.Parts{Log: log, Child: []string{self, "decode"}})
	if err != nil {
		return err
	}
	const most = 10
	for range most {
		did, err := d.Once(t.Context())
		if err != nil {
			return fmt.Errorf("%w\n%s", err, said.String())
		}
		if did == (work.Summary{}) {
			return nil
		}
		time.Sleep(2 * time.Millisecond) // a product that was reopened may not be due yet
	}
	return fmt.Errorf("there is still work to do after %d passes\n%s", most, said.String())
}

// consume runs the consumer until it has all that is there.
func consume(t *testing.T, broker, folder string) error {
	t.Helper()
	for _, command := range files.Commands() {
		if command.Name() == "consume" {
			_, said, err := clitest.Run(t, command, "--once", "--brokers", broker, "--to", folder)
			if err != nil {
				return fmt.Errorf("%w\n%s", err, said)
			}
		}
	}
	return nil
}

// oneSumEach checks that no revision was announced with two contents.
func (c *checker) oneSumEach(events []kafka.Event) {
	sums := map[string]string{}
	for _, e := range events {
		key := fmt.Sprint(e.Dataset, " ", e.Granule, " ", e.Revision)
		if there := sums[key]; there != "" && there != e.File.SHA256 {
			c.found("%s was announced with sha256 %.8s and %.8s", key, there, e.File.SHA256)
		}
		sums[key] = e.File.SHA256
	}
}

// complete checks that every object of the archive is a product, in the ledger,
// on the disk, announced and consumed.
func (c *checker) complete(t *testing.T, events []kafka.Event) {
	t.Helper()
	book, err := ledger.Join(t.Context(), filepath.Join(c.disk, "state", "ledger.db"))
	if err != nil {
		c.found("the ledger does not open: %v", err)
		return
	}
	defer book.Close()
	rows, err := book.Window(t.Context(), dataset, time.Time{}, time.Now())
	if err != nil {
		c.found("the ledger cannot be read: %v", err)
	}
	have := map[string]ledger.Granule{}
	for _, g := range rows {
		have[g.Name] = g
	}
	newest := map[string]kafka.Event{}
	for _, e := range events {
		if e.Revision > newest[e.Granule].Revision {
			newest[e.Granule] = e
		}
	}
	for name, sum := range c.want {
		g, e := have[name], newest[name]
		switch {
		case name == spoiled:
			c.setAside(t, book, sum)
			continue
		case g.SHA256 != sum || g.State != ledger.Announced:
			c.found("%s was lost: the ledger has %.8q in state %q, the archive %.8s", name, g.SHA256, g.State, sum)
			continue
		case e.Revision != g.Revision || e.File.SHA256 != g.Product.SHA256:
			c.found("%s has revision %d with sha256 %.8s, %d with %.8s was announced", name, g.Revision, g.Product.SHA256, e.Revision, e.File.SHA256)
		}
		c.file("consumed product", filepath.Join(c.consumed(), dataset, e.File.Name), g.Product.SHA256)
	}
}

// setAside checks that the object that is no granule is kept with the reason.
func (c *checker) setAside(t *testing.T, book *ledger.Ledger, sum string) {
	t.Helper()
	rows, err := book.Granules(t.Context(), ledger.GranuleQuery{Dataset: dataset, Name: spoiled})
	if err != nil || len(rows) != 1 || rows[0].State != ledger.Quarantined || rows[0].Reason == "" {
		c.found("%s is not set aside once, with a reason: %+v, %v", spoiled, rows, err)
		return
	}
	place := quarantine.Folder{State: state.Dir(filepath.Join(c.disk, "state"))}.File(rows[0])
	c.file("set aside", place, sum)
}

// tidy checks that every visible product has its side file, and that nothing
// unfinished was left.
func (c *checker) tidy() {
	err := filepath.WalkDir(filepath.Join(c.disk, "products"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".put-"):
			c.found("unfinished files were left: %s", path)
		case d.IsDir() && d.Name() == ".revisions":
			return fs.SkipDir
		case strings.HasSuffix(path, ".nc") && d.Type().IsRegular():
			if _, err := os.Stat(path + ".sha256"); err != nil {
				c.found("visible without its side file: %v", err)
			}
		}
		return nil
	})
	if err != nil {
		c.found("%v", err)
	}
}
