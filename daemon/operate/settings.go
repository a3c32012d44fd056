package operate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"lacuna/daemon/books"
	"lacuna/daemon/gridpin"
	"lacuna/daemon/intake"
	"lacuna/daemon/outbox"
	"lacuna/daemon/retrain"
	"lacuna/daemon/state"
	"lacuna/internal/faults"
	"lacuna/ledger"
	"lacuna/ops"
)

// Settings are the part of the configuration that the operations need.
type Settings struct {
	State    state.Dir
	Products string // folder of products
	Publish  outbox.Config
	Train    retrain.Config
	Datasets []Dataset
	Ahead    int // granules that workers have sent to them ahead; 0: the daemon fills
}

// Dataset is a dataset as an operator sees it.
type Dataset struct {
	intake.Dataset
	Grid *gridpin.Pin // nil: the first granules vote
	// ByModel says that a model may fill the dataset.
	ByModel bool
	// SkipsEmptyDays says that a day without a granule has no product.
	SkipsEmptyDays bool
	// Clock returns the time in a simulated sea; nil: it is that of the machine.
	Clock func(now time.Time) time.Time
}

// dataset returns the dataset with a name.
func (s Settings) dataset(name string) (Dataset, error) {
	i := slices.IndexFunc(s.Datasets, func(d Dataset) bool { return d.Name == name })
	if i < 0 {
		return Dataset{}, fmt.Errorf("%w: there is no dataset %q", faults.ErrConfig, name)
	}
	return s.Datasets[i], nil
}

// hasSeries reports whether a name is that of the series of a source.
func (s Settings) hasSeries(name string) bool {
	return slices.ContainsFunc(s.Datasets, func(d Dataset) bool {
		return slices.ContainsFunc(d.Series(), func(one intake.Dataset) bool { return one.Name == name })
	})
}

// Known reports whether a dataset is configured.
func (s Settings) Known(name string) bool {
	_, err := s.dataset(name)
	return err == nil
}

// named returns the dataset with a name, or all where it is empty.
func (s Settings) named(name string) ([]Dataset, error) {
	if name == "" {
		return s.Datasets, nil
	}
	d, err := s.dataset(name)
	return []Dataset{d}, err
}

// Station is a service with its parts, for the operations that need more than the
// ledger: those that list archives, check sinks or fetch.
type Station struct {
	Settings
	Archives *intake.Archives
	Keeper   books.Keeper
	// Open opens the ledger for this process alone, and Close closes it.
	Open  func(ctx context.Context) (*ledger.Ledger, error)
	Close func(ctx context.Context, book *ledger.Ledger)

	Scheduler func(dataset string, book *ledger.Ledger) *retrain.Scheduler // nil: nothing is trained
	Alarms    ops.HookConfig
	Machine   ops.Machine
	Isolation func(ctx context.Context) (walls string, err error) // tries the sandbox of the decoding child
	Shared    string                                              // folder that workers see; empty: granules are filled in the daemon
	Bucket    func() (found string, err error)                    // tries the bucket in the place of that folder; nil: there is none
	Workers   func(ctx context.Context) (found string, err error) // tries the brokers of workers; nil: likewise

	Now func() time.Time
	Log *slog.Logger
}
