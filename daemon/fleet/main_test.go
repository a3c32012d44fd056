package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/cli/models"
	"lacuna/daemon/feed"
	"lacuna/daemon/outbox"
	"lacuna/daemon/state"
	"lacuna/pipeline/simulate"
	"lacuna/publish/kafka"

	"github.com/spf13/cobra"
)

// The test binary is a daemon or a worker where roleEnv says so, the program for
// trainings, and its own decoding child.
func TestMain(m *testing.M) {
	clitest.Decode()
	switch {
	case len(os.Args) > 1 && os.Args[1] == "train":
		root := &cobra.Command{Use: "lacuna", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(models.Commands()...)
		if err := root.ExecuteContext(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv(roleEnv) != "" && (len(os.Args) < 2 || os.Args[1] != "decode"):
		if err := play(os.Getenv(roleEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		clitest.Main(m)
	}
	os.Exit(0)
}

// newDaemon is a daemon or worker whose children are this program.
func newDaemon(cfg daemon.Config, log *slog.Logger, now func() time.Time) (*daemon.Daemon, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return daemon.New(cfg, daemon.Parts{Log: log, Child: []string{self, "decode"}, Program: []string{self}, Name: os.Getenv(nameEnv), Now: now})
}

func stateOf(cfg daemon.Config) state.Dir { return state.Dir(cfg.StateDir) }

// publishingConfig is a daemon with the sinks disk and kafka in a folder.
func publishingConfig(folder, broker string) daemon.Config {
	cfg := daemon.DefaultConfig()
	cfg.StateDir, cfg.ProductsDir = filepath.Join(folder, "state"), filepath.Join(folder, "products")
	cfg.Web.Listen = "127.0.0.1:0"
	cfg.Publish.Disk.FloorMiB, cfg.Publish.QuickLook = 0, false
	cfg.Publish.RetryMin, cfg.Publish.Poll = 10*time.Millisecond, 50*time.Millisecond
	cfg.Publish.Kafka = &outbox.Kafka{Config: kafka.DefaultConfig()}
	cfg.Publish.Kafka.Brokers = []string{broker}
	cfg.Publish.Kafka.PartBytes = 16 << 10 // so that small products have parts
	return cfg
}

// firstVersions returns the first deliveries of the first n days that have
// observations, by day.
func firstVersions(w *simulate.World, n int) []simulate.Delivery {
	var all []simulate.Delivery
	for _, d := range w.Schedule() {
		if d.Revision == 1 && w.Granule(d).Seen.ObservedMask().Count() > 0 {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b simulate.Delivery) int { return a.Day - b.Day })
	return all[:n]
}

func put(t *testing.T, folder string, g simulate.Granule) {
	t.Helper()
	if err := feed.Write(filepath.Join(folder, g.Name), g); err != nil {
		t.Fatal(err)
	}
}
