// Package pages is the content of the web pages and of `lacuna status`: the state
// of the service, the calendar, granules with their stories and maps, and models.
//
// It reads the ledger, the model store and the live state of a running daemon, and
// changes none of them: the actions of a page are operations of package operate.
// It does not know HTML or how granules are filled.
package pages

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/operate"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/pipeline/ingest"
	"lacuna/publish/disk"
)

// Pages are the pages of one service.
type Pages struct {
	Settings   operate.Settings
	ModelStore string // folder of the model store; empty: there is none
	Listen     string // address of the status page
	Limits     ops.Limits
	Machine    ops.Machine
	Reader     Reader
	Live       Live
	Troubles   *Troubles
	// Join opens the ledger beside a daemon that may be running.
	Join func(ctx context.Context, scratch string) (*ledger.Ledger, error)
	Now  func() time.Time
}

// Reader decodes products.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// Live is the state of a running daemon that its ledger does not hold; all of it
// is empty where none runs.
type Live interface {
	Ready() bool
	Hung() string                         // name of a stage that hangs; empty: none
	Method(dataset string) string         // method or model that fills a dataset; empty: the next granule decides
	Unreloaded() string                   // why the configuration in the file was not taken up; empty: it was
	Away() string                         // why models run without the GPU that was asked for; empty: they do not
	Intake(dataset string) *intake.Intake // watcher of a dataset; nil: none runs
	Refused(sink string) string           // reason why nothing is delivered; empty: none
	Fleet() *ops.Fleet                    // workers on other machines; nil: it fills by itself
}

// Sources returns the content and the actions of the web interface on an open
// ledger; the content is read by a look into it. The actions are those of the
// operator's commands.
func (p Pages) Sources(book, look *ledger.Ledger) ops.Sources {
	o := operate.New(p.Settings, book, p.Now)
	r := reading{Operations: operate.New(p.Settings, look, p.Now), settings: p.Settings, book: look}
	return ops.Sources{
		Status: p.Status(look), Products: p.Settings.Products,
		Days: days{r}, Granules: granules{reading: r, reader: p.Reader}, Models: models{reading: r, store: p.ModelStore, now: p.Now}, Actions: o,
		Catalogue: catalogue{reading: r, store: disk.Store{Root: p.Settings.Products}}, Machine: p.Machine,
	}
}

// reading is the open ledger with the settings, shared by all pages.
type reading struct {
	*operate.Operations
	settings operate.Settings
	book     *ledger.Ledger
}

// known returns ops.ErrNotFound where no dataset has that name.
func (r reading) known(dataset string) error {
	if r.settings.Known(dataset) {
		return nil
	}
	return fmt.Errorf("dataset %s: %w", dataset, ops.ErrNotFound)
}

// Troubles are the errors that keep granules from being filled, by dataset.
type Troubles struct {
	mu sync.Mutex // guards by
	by map[string]string
}

// Note records the error of the last attempt on a dataset; nil clears it.
func (t *Troubles) Note(dataset string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]string{}
	}
	delete(t.by, dataset)
	if err != nil {
		t.by[dataset], _, _ = strings.Cut(err.Error(), "\n")
	}
}

// Of returns the error of the last attempt on a dataset; empty: there was none.
func (t *Troubles) Of(dataset string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[dataset]
}
