// Package books opens, keeps and rebuilds the ledger of a state. While a ledger
// is open no other process works on it, the folder of products belongs to this
// state, and the journal is at most ten seconds behind. A ledger that is damaged,
// or that lacks entries of its journal, is rebuilt from the journal, the spool,
// the quarantine and the products.
//
// It does not know how granules are filled or delivered.
package books

import (
	"context"
	"log/slog"
	"time"

	"lacuna/daemon/state"
	"lacuna/pipeline/ingest"
	"lacuna/publish/disk"
)

// Keeper opens and keeps the ledger of a state.
type Keeper struct {
	State    state.Dir
	Store    disk.Store                // the folder of products
	Datasets map[string]ingest.Options // the configured datasets, by name
	Sinks    []string                  // names of the sinks in the ledger
	Reader   Reader
	Now      func() time.Time
	Log      *slog.Logger
}

// Reader decodes granules and products.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}
