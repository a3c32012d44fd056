package cuts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/internal/checkout"
	"lacuna/internal/powercut"
	"lacuna/modelstore"
	"lacuna/pipeline/simulate"
)

const (
	dataset = "sea"
	prefix  = "lacuna" // of the topics
)

// site is where a service lives: the disk whose power is cut, and beside it what
// has a power supply of its own.
type site struct {
	disk    string // state, products, stores and the folder of a consumer
	archive string
	aside   string // configuration, models to import
	program string // what runs the commands
}

func newSite(t *testing.T) site {
	t.Helper()
	top, err := os.MkdirTemp(checkout.Memory(), "lacuna-cuts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkout.RemoveTree(top) })
	s := site{disk: filepath.Join(top, "disk"), archive: filepath.Join(top, "archive"), aside: filepath.Join(top, "aside"), program: os.Args[0]}
	for _, dir := range []string{s.disk, s.archive, s.aside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s site) models() string   { return filepath.Join(s.disk, "models") }
func (s site) consumed() string { return filepath.Join(s.disk, "consumed") }

// configure writes the configuration for a broker.
func (s site) configure(broker string) (file string, err error) {
	file = filepath.Join(s.aside, "lacuna.yaml")
	text := fmt.Sprintf(`state_dir: %[1]s/state
products_dir: %[1]s/products
web: {listen: "127.0.0.1:0"}
publish:
  quick_look: false
  retry_min: 10ms
  poll: 50ms
  disk: {floor_mib: 0}
  zarr: {dir: %[1]s/zarr}
  kafka: {brokers: [%[3]q], part_bytes: 16384}
datasets:
  - name: %[4]s
    archive: {dir: %[2]s, poll_interval: 100ms, settle: 0s}
    fill: {method: climatology, past_days: 2, future_days: 1}
    reanalysis: {settle: 1ms, least_change: 0.02}
`, s.disk, s.archive, broker, dataset)
	return file, os.WriteFile(file, []byte(text), 0o644)
}

// granules is the producer of the archive.
type granules struct {
	archive string
	world   *simulate.World
	next    []simulate.Delivery
}

func newGranules(t *testing.T, archive string) *granules {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 16, Width: 24, Days: 60, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	g := &granules{archive: archive, world: w}
	for _, d := range w.Schedule() {
		if w.Granule(d).Seen.ObservedMask().Count() > 0 {
			g.next = append(g.next, d)
		}
	}
	return g
}

// deliver writes the next n granules.
func (g *granules) deliver(n int) error {
	for _, d := range g.next[:n] {
		if err := feed.Write(filepath.Join(g.archive, d.Name), g.world.Granule(d)); err != nil {
			return err
		}
	}
	g.next = g.next[n:]
	return nil
}

// spoiled is the name of an object that is no granule.
const spoiled = "20240409_spoiled.nc"

// spoil delivers something that has to be set aside.
func (g *granules) spoil() error {
	return os.WriteFile(filepath.Join(g.archive, spoiled), []byte("CDF\x01 and nothing else"), 0o644)
}

// correct replaces a granule by one with other numbers.
func (g *granules) correct(name string) error {
	for _, d := range g.world.Schedule() {
		if d.Name != name {
			continue
		}
		changed := g.world.Granule(d)
		for i, v := range changed.Seen.Values {
			if v == v { // not a gap
				changed.Seen.Values[i] = v * 1.01
			}
		}
		return feed.Write(filepath.Join(g.archive, name), changed)
	}
	return fmt.Errorf("no granule %s", name)
}

// finished marks a command that has said that it is done.
type finished struct{ command string }

// recording is a scenario that was run to its end.
type recording struct {
	site
	log      *powercut.Log
	topics   map[string]messages
	versions []string          // of models, in the order of their promotions
	want     map[string]string // sha256 of the objects in the archive, by name
}

// record runs the scenario: granules arrive, are filled, published, corrected,
// made again and consumed, and models are imported and promoted.
func record(t *testing.T, s site) *recording {
	t.Helper()
	r := &recording{site: s, want: map[string]string{}}
	disk, err := powercut.Mount(s.disk)
	if err != nil {
		t.Skipf("a disk cannot be mounted here, which needs /dev/fuse and root or fusermount3: %v", err)
	}
	err = r.run(t, disk)
	log, gone := disk.Unmount()
	if err := errors.Join(err, gone); err != nil {
		t.Fatal(err)
	}
	r.log = log
	return r
}

func (r *recording) run(t *testing.T, disk *powercut.Disk) error {
	broker, err := newBroker(disk)
	if err != nil {
		return err
	}
	defer broker.Close()
	config, err := r.configure(broker.ListenAddrs()[0])
	if err != nil {
		return err
	}
	tars, err := r.makeModels(t.Context())
	if err != nil {
		return err
	}
	g := newGranules(t, r.archive)
	first := g.next[0].Name
	once := []string{"once", "--config", config}
	consume := []string{"consume", "--once", "--brokers", broker.ListenAddrs()[0], "--to", r.consumed()}
	steps := []struct {
		before func() error
		args   []string
	}{
		{func() error { return errors.Join(g.deliver(2), g.spoil()) }, once},
		{nil, []string{"models", "import", tars[0], "--store", r.models()}},
		{nil, []string{"models", "promote", r.versions[0], "--store", r.models()}},
		{func() error { return g.deliver(1) }, once},
		{nil, consume},
		{func() error { return g.correct(first) }, once},
		{nil, []string{"models", "import", tars[1], "--store", r.models()}},
		{nil, []string{"models", "promote", r.versions[1], "--store", r.models()}},
		{nil, []string{"redo", first, "--why", "asked", "--config", config}},
		{nil, once},
		{nil, consume},
	}
	for _, step := range steps {
		if step.before != nil {
			if err := step.before(); err != nil {
				return err
			}
		}
		if err := r.command(step.args...); err != nil {
			return err
		}
		disk.Mark(finished{strings.Join(step.args, " ")})
	}
	if r.want, err = sums(r.archive); err != nil {
		return err
	}
	r.topics, err = readTopics(t.Context(), broker)
	return err
}

// command runs the program.
func (s site) command(args ...string) error {
	c := exec.Command(s.program, args...)
	c.Env = append(os.Environ(), programEnv+"=1")
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("lacuna %s: %w\n%s", strings.Join(args, " "), err, said)
	}
	return nil
}

// makeModels exports two versions of a model as tar files.
func (r *recording) makeModels(ctx context.Context) (tars []string, err error) {
	day := time.Date(2024, 4, 1, 12, 0, 0, 0, time.UTC)
	elsewhere := modelstore.New(filepath.Join(r.aside, "models"), func() time.Time { return day })
	for _, note := range []string{"first", "second"} {
		card := modelstore.Card{
			Kind: "trained", Dataset: dataset, Variable: "CHL", Units: "mg m-3", Lacuna: "0.2", Note: note,
			Networks: []modelstore.Network{{File: modelstore.ImputerFile, Backbone: "unet", Size: "tiny", Parameters: 1}},
		}
		v, err := elsewhere.Write(ctx, card, map[string]io.Reader{modelstore.ImputerFile: strings.NewReader(strings.Repeat(note, 3000))})
		if err != nil {
			return nil, err
		}
		var tar bytes.Buffer
		file := filepath.Join(r.aside, note+".tar")
		if err := errors.Join(elsewhere.Export(ctx, v.ID, &tar), os.WriteFile(file, tar.Bytes(), 0o644)); err != nil {
			return nil, err
		}
		tars, r.versions = append(tars, file), append(r.versions, v.ID)
	}
	return tars, nil
}

// sums returns the sha256 of the files in a folder, by name.
func sums(dir string) (map[string]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, e := range list {
		if all[e.Name()], err = sumOf(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func sumOf(path string) (string, error) {
	content, err := os.ReadFile(path)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), err
}
