package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/infer"

	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	// againEnv makes the test binary a daemon that reprocesses in the folder it
	// names, and againKillsEnv is how often it is killed.
	againEnv      = "LACUNA_TEST_AGAIN"
	againKillsEnv = "LACUNA_AGAIN_KILLS"
	againKills    = 8
	againDays     = 12
)

// againConfig is a daemon with one dataset, a store of models, the sinks disk and
// kafka, and the rule that every product is made again by a new champion.
func againConfig(folder, broker string) Config {
	cfg := publisherConfig(folder, broker)
	cfg.Web.Listen = "127.0.0.1:0"
	cfg.Publish.QuickLook = false
	cfg.Train.Store, cfg.Train.Engine, cfg.Train.ReprocessDays = filepath.Join(folder, "store"), "ort", 40
	set := DefaultDataset()
	set.Name = "chl"
	set.Archive.PollInterval, set.Archive.Settle, set.Archive.Dir = 40*time.Millisecond, 0, filepath.Join(folder, "archive")
	set.Fill.PastDays, set.Fill.FutureDays, set.DailySkill, set.Fill.Network.Tier = 1, 0, false, infer.Fast
	cfg.Datasets = []Dataset{set}
	return cfg
}

// TestAgainProcess is the daemon that is killed, in a process of its own; it tests
// nothing itself.
func TestAgainProcess(t *testing.T) {
	folder := os.Getenv(againEnv)
	if folder == "" {
		t.Skip("is started by TestAKilledReprocessingMakesEveryProductOnce")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(againConfig(folder, os.Getenv(brokerEnv)), Parts{Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Child: []string{self, "decode"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if os.Getenv(finishEnv) != "" {
		go func() {
			defer stop()
			for !againDone(ctx, d) {
				time.Sleep(50 * time.Millisecond)
			}
		}()
	}
	if err := d.Run(ctx); err != nil || os.Getenv(finishEnv) == "" {
		t.Fatal(err)
	}
}

// againDone reports whether every product is made again by the champion and
// delivered.
func againDone(ctx context.Context, d *Daemon) bool {
	station := d.Station()
	champion, err := station.ChampionOf("chl")
	var noted struct{ Version string }
	if _, noteErr := state.Load(d.cfg.state().Champion("chl"), &noted); err != nil || noteErr != nil || noted.Version != champion {
		return false
	}
	book, err := ledger.Join(ctx, d.cfg.state().Ledger())
	if err != nil {
		return false
	}
	defer book.Close()
	pending, err := book.FirstPending(ctx, "chl", 1)
	if err != nil || len(pending) > 0 || exists(d.cfg.state().Backfill("chl")) {
		return false
	}
	made, err := book.Publications(ctx, "chl", time.Time{}, time.Time{})
	if err != nil || len(made) < againDays {
		return false
	}
	backlogs, err := book.Backlogs(ctx)
	for _, b := range backlogs {
		if b.Waiting > 0 {
			return false
		}
	}
	return err == nil
}

// A daemon that makes its products again is killed at random moments, while
// versions are promoted: in the end every product was made by the last champion,
// none twice for one champion, and ledger, disk and topic agree on each revision.
func TestAKilledReprocessingMakesEveryProductOnce(t *testing.T) {
	skipInShort(t)
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	run := againRun{folder: t.TempDir(), broker: broker.ListenAddrs()[0], said: filepath.Join(t.TempDir(), "said")}
	cfg := againConfig(run.folder, run.broker)
	if err := os.MkdirAll(cfg.Datasets[0].Archive.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := world(t, 16, 24)
	for _, d := range firstVersions(w, againDays) {
		if err := feed.Write(filepath.Join(cfg.Datasets[0].Archive.Dir, d.Name), w.Granule(d)); err != nil {
			t.Fatal(err)
		}
	}
	store := modelstore.New(cfg.Train.Store, time.Now)
	seed := uint64(1)
	promoteAnother(t, store, seed)
	run.finish(t) // every product is there, by the first champion

	random := rand.New(rand.NewPCG(5, 3))
	kills := againKills
	if text := os.Getenv(againKillsEnv); text != "" {
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", againKillsEnv, err)
		}
	}
	for i := range kills {
		if i%4 == 0 {
			seed++
			promoteAnother(t, store, seed)
		}
		run.kill(t, i%3 == 0, time.Duration(random.IntN(1200))*time.Millisecond)
	}
	run.finish(t)

	rows := siteOf(cfg).Rows(t)
	siteOf(cfg).WantAgreement(t, rows)
	made := wantEachReasonOnce(t, cfg)
	t.Logf("%d kills, %d champions, %d products, %d revisions, %d of them made again", kills, seed, againDays, len(rows), made)
	if promotions, err := store.Log(); err != nil || len(promotions) != int(seed) {
		t.Errorf("the store has %d promotions, want %d: %v", len(promotions), seed, err)
	}
}

// wantEachReasonOnce checks that no product was made again twice for one reason, and
// that the newest is of the champion. It returns how many were made again.
func wantEachReasonOnce(t *testing.T, cfg Config) int {
	t.Helper()
	champion, err := modelstore.New(cfg.Train.Store, time.Now).Champion("chl")
	if err != nil {
		t.Fatal(err)
	}
	book, err := ledger.Join(t.Context(), cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	all, err := book.Recent(t.Context(), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	made, again := map[string]bool{}, 0
	for _, g := range all {
		if g.Cause != ledger.Redo {
			continue
		}
		again++
		if key := g.Name + " " + g.Why; made[key] {
			t.Errorf("%s was made twice: %s", g.Name, g.Why)
		} else {
			made[key] = true
		}
	}
	holds := (&bench{cfg: cfg}).current(t)
	granules := 0
	for name, p := range holds {
		if filledBy(p) != champion.Version {
			t.Errorf("%s revision %d is by %s, want the champion %s", name, p.Revision, filledBy(p), champion.Version)
		}
		granules++
	}
	if granules < againDays {
		t.Errorf("%d products of %d granules are there", granules, againDays)
	}
	return again
}

// againRun is a daemon that is started and killed again and again.
type againRun struct{ folder, broker, said string }

func (r againRun) start(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAgainProcess$", "-test.count=1")
	cmd.Env = append(append(os.Environ(), againEnv+"="+r.folder, brokerEnv+"="+r.broker), env...)
	said, err := os.Create(r.said) // a file, because children of the killed process would keep a pipe open
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// kill runs the daemon for a while and kills it: counted from its start, or from
// when its stages run.
func (r againRun) kill(t *testing.T, early bool, after time.Duration) {
	t.Helper()
	cmd := r.start(t)
	for began := time.Now(); !early && time.Since(began) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if text, _ := os.ReadFile(r.said); bytes.Contains(text, []byte("status page")) {
			break
		}
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		text, _ := os.ReadFile(r.said)
		t.Fatalf("the daemon ended by itself: %v\n%s", err, text)
	}
}

// finish runs the daemon until nothing is left to do.
func (r againRun) finish(t *testing.T) {
	t.Helper()
	cmd := r.start(t, finishEnv+"=1")
	timer := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() }) // many times what it takes, on a busy machine too
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(r.said)
		t.Fatalf("finish: %v\n%s", err, text)
	}
}
