// Package pages shows the service: its status, with or without a daemon that
// runs, the calendar, granules with their stories and maps, and models.
//
// It reads the ledger, the model store and what the daemon tells of its stages,
// and changes nothing: what a page asks for is an operation of package operate.
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
)

// Pages are the pages of one service.
type Pages struct {
	Settings   operate.Settings
	ModelStore string // folder; empty: there is none
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

// Reader decodes files.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}

// Live is what a daemon that runs tells of itself, and one that does not run
// leaves empty.
type Live interface {
	Ready() bool
	Hung() string                         // stage that hangs; empty: none
	Method(dataset string) string         // what fills a dataset
	Training(dataset string) string       // news of its model
	Intake(dataset string) *intake.Intake // nil: nothing is brought in
	Refused(sink string) string           // why nothing is delivered; empty: it is
}

// Sources are what the web interface shows. Its actions are those of the
// operator's commands, on the ledger that is open.
func (p Pages) Sources(book *ledger.Ledger) ops.Sources {
	o := operate.New(p.Settings, book, p.Now)
	r := reading{Operations: o, settings: p.Settings, book: book}
	return ops.Sources{
		Status: p.Status(book), Products: p.Settings.Products,
		Days: days{r}, Granules: granules{reading: r, reader: p.Reader}, Models: models{reading: r, store: p.ModelStore, now: p.Now}, Actions: o,
		Machine: p.Machine,
	}
}

// reading is what the pages read from.
type reading struct {
	*operate.Operations
	settings operate.Settings
	book     *ledger.Ledger
}

// known errs where no dataset has that name.
func (r reading) known(dataset string) error {
	if r.settings.Known(dataset) {
		return nil
	}
	return fmt.Errorf("dataset %s: %w", dataset, ops.ErrNotFound)
}

// Troubles are what keeps the granules of datasets from being filled.
type Troubles struct {
	mu sync.Mutex // guards by
	by map[string]string
}

// Note records how the last attempt on a dataset ended.
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

// Of returns why granules of a dataset are left unfinished; empty: none is.
func (t *Troubles) Of(dataset string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[dataset]
}
