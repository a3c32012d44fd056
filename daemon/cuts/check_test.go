package cuts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/daemon/quarantine"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"
	"lacuna/publish/zarr/zarrtest"
)

// checker looks at a disk, and collects what is wrong with it.
type checker struct {
	*recording
	wrong []string
}

func (c *checker) found(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// disk checks what a cut has left against what the world was told before it.
func (c *checker) image(t *testing.T, marks []any) {
	t.Helper()
	events := c.announcedBy(t, marks)
	c.ledger(t.Context(), events)
	c.products()
	c.modelsAfter(marks)
	c.consumedAfter(t, marks)
}

// announcedBy returns the events that were sent before a cut.
func (c *checker) announcedBy(t *testing.T, marks []any) []kafka.Event {
	t.Helper()
	topic := kafka.EventsTopic(prefix)
	count := map[int32]int{}
	for _, m := range marks {
		if m, ok := m.(sent); ok {
			for _, to := range m.request.Topics {
				for _, p := range to.Partitions {
					if to.Topic == topic {
						count[p.Partition] += recordsIn(p.Records)
					}
				}
			}
		}
	}
	before := messages{}
	for p, n := range count {
		before[p] = c.topics[topic][p][:n]
	}
	return eventsIn(t, before)
}

// ledger checks that the ledger opens, that every file that it tells of is
// there, byte for byte, and that it knows every event that was sent.
func (c *checker) ledger(ctx context.Context, events []kafka.Event) {
	path := filepath.Join(c.disk, "state", "ledger.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if len(events) > 0 {
			c.found("the ledger is gone, and %d events were sent", len(events))
		}
		return
	}
	book, err := ledger.Open(ctx, path)
	if err != nil {
		c.found("the ledger does not open: %v", err)
		return
	}
	defer book.Close()
	if err := book.Check(ctx); err != nil {
		c.found("the ledger is damaged: %v", err)
	}
	rows, err := book.Recent(ctx, 1_000_000)
	if err != nil {
		c.found("the ledger cannot be read: %v", err)
	}
	for _, g := range rows {
		if place := (quarantine.Folder{State: state.Dir(filepath.Join(c.disk, "state"))}).File(g); g.SHA256 != "" {
			c.file("spool", place, g.SHA256)
		}
		c.delivered(ctx, book, g.Name)
	}
	published, err := book.Publications(ctx, "", time.Time{}, time.Time{})
	if err != nil {
		c.found("the ledger cannot be read: %v", err)
	}
	for _, p := range published {
		c.file("revision", p.File, outbox.Delivery(ledger.Delivery{Publication: p}).Product.SHA256)
	}
	for _, e := range events {
		if sum, known, err := book.Promised(ctx, e.Dataset, e.Granule, e.Revision); err != nil || !known || sum != e.File.SHA256 {
			c.found("%s was announced with sha256 %.8s, the ledger has %.8q, %v", e.ID, e.File.SHA256, sum, err)
		}
	}
}

// file checks the content of a file.
func (c *checker) file(what, path, sha256 string) {
	switch sum, err := sumOf(path); {
	case err != nil:
		c.found("%s: %v", what, err)
	case sum != sha256:
		c.found("%s %s has sha256 %.8s, want %.8s", what, path, sum, sha256)
	}
}

// delivered checks that sinks hold what the ledger says they were given.
func (c *checker) delivered(ctx context.Context, book *ledger.Ledger, granule string) {
	all, err := book.Deliveries(ctx, dataset, granule)
	if err != nil {
		c.found("the ledger cannot be read: %v", err)
	}
	newest := map[string]publish.Product{} // by sink
	replaced := map[string]bool{}          // sinks that may just be replacing it
	for _, d := range all {
		replaced[d.Sink] = replaced[d.Sink] || d.State == ledger.Waiting
		p := outbox.Delivery(d).Product
		if d.State == ledger.Delivered && p.Revision >= newest[d.Sink].Revision {
			newest[d.Sink] = p
		}
	}
	for sink, folder := range map[string]string{"disk": filepath.Join(c.disk, "products"), "zarr": filepath.Join(c.disk, "zarr", ".manifests")} {
		p, given := newest[sink]
		if !given {
			continue
		}
		entry, err := c.listed(folder, p)
		if err != nil || entry.Revision < p.Revision {
			c.found("%s was delivered to %s, whose manifest has revision %d, %v", p.ID(), sink, entry.Revision, err)
		}
	}
	if p, given := newest["zarr"]; given && !replaced["zarr"] {
		if err := zarrtest.Holds(ctx, filepath.Join(c.disk, "zarr", p.Dataset+".zarr"), p.Path); err != nil {
			c.found("%s was delivered to zarr: %v", p.ID(), err)
		}
	}
}

// listed returns the entry of a product in the manifest of its day.
func (c *checker) listed(folder string, p publish.Product) (publish.Entry, error) {
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(publish.DefaultFolders.Folder(p.Dataset, p.Time)), publish.ManifestName(p.Time)))
	if err != nil {
		return publish.Entry{}, err
	}
	m, err := publish.ParseManifest(text)
	if err != nil {
		return publish.Entry{}, err
	}
	e, _ := m.Entry(p.Granule)
	return e, nil
}

// products checks what readers of the folder rely on: a side file vouches for
// the file beside it, and so does a manifest.
func (c *checker) products() {
	root := filepath.Join(c.disk, "products")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		text := func() []byte { text, _ := os.ReadFile(path); return text }
		switch {
		case strings.HasSuffix(path, ".sha256"):
			sum, _, _ := strings.Cut(string(text()), " ")
			c.file("product", strings.TrimSuffix(path, ".sha256"), sum)
		case strings.HasSuffix(path, ".manifest.json"):
			m, err := publish.ParseManifest(text())
			if err != nil {
				c.found("%s: %v", path, err)
			}
			for _, e := range m.Products {
				if e.Live() {
					c.file("listed product", filepath.Join(filepath.Dir(path), e.File), e.SHA256)
				}
			}
		}
		return nil
	})
	if err != nil {
		c.found("%v", err)
	}
}

// modelsAfter checks that the store of models is whole, and that what was
// promoted serves.
func (c *checker) modelsAfter(marks []any) {
	store := modelstore.New(c.models(), time.Now)
	promoted := -1
	for _, m := range marks {
		if m, ok := m.(finished); ok {
			for i, v := range c.versions {
				if strings.Contains(m.command, "models promote "+v) {
					promoted = i
				}
			}
		}
	}
	_, bad, err := store.List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(bad) > 0 {
		c.found("the store of models is damaged: %v, %v", err, bad)
	}
	if _, err := store.Log(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.found("the log of promotions is damaged: %v", err)
	}
	if promoted < 0 {
		return
	}
	serving, err := store.LoadChampion(dataset)
	if err != nil {
		c.found("%s was promoted, and no champion serves: %v", c.versions[promoted], err)
		return
	}
	for i, v := range c.versions {
		if serving.Version.ID == v && i < promoted {
			c.found("%s serves, after %s was promoted", v, c.versions[promoted])
		}
	}
}

// consumedAfter checks that a consumer has every product whose offset it has
// committed.
func (c *checker) consumedAfter(t *testing.T, marks []any) {
	t.Helper()
	topic, before := kafka.EventsTopic(prefix), messages{}
	for _, m := range marks {
		if m, ok := m.(committed); ok {
			for _, to := range m.request.Topics {
				for _, p := range to.Partitions {
					if to.Topic == topic {
						before[p.Partition] = c.topics[topic][p.Partition][:p.Offset]
					}
				}
			}
		}
	}
	for _, e := range eventsIn(t, before) {
		path := filepath.Join(c.consumed(), consumer.FileName(e.Dataset), consumer.FileName(e.File.Name))
		var there kafka.Event
		text, err := os.ReadFile(path + ".json")
		if err == nil {
			err = json.Unmarshal(text, &there)
		}
		if err != nil || there.Revision < e.Revision {
			c.found("the offset of %s was committed, and its event is not there: revision %d, %v", e.ID, there.Revision, err)
			continue
		}
		c.file("consumed product", path, c.sumOfRevision(t, e.Granule, there))
	}
}

// sumOfRevision returns the sha256 that a revision was announced with. A file
// may be one revision ahead of its event, which is written after it and again
// after a restart.
func (c *checker) sumOfRevision(t *testing.T, granule string, there kafka.Event) string {
	t.Helper()
	path := filepath.Join(c.consumed(), consumer.FileName(there.Dataset), consumer.FileName(there.File.Name))
	sum, _ := sumOf(path)
	for _, e := range eventsIn(t, c.topics[kafka.EventsTopic(prefix)]) {
		if e.Granule == granule && e.Revision > there.Revision && e.File.SHA256 == sum {
			return sum
		}
	}
	return there.File.SHA256
}
