// Package books opens and keeps the ledger of a state: one process works on it,
// the folder of products is this state's, the journal beside it follows, and a
// ledger that is damaged, or that lacks what its journal knows, is made anew from
// what is on the disk: the journal, the spool, the granules that were set aside
// and the products.
//
// It knows nothing of how granules are filled or delivered.
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
	Store    disk.Store                // folder of products
	Datasets map[string]ingest.Options // those that are configured, by name
	Sinks    []string                  // names under which sinks stand in the ledger
	Reader   Reader
	Now      func() time.Time
	Log      *slog.Logger
}

// Reader decodes files.
type Reader interface {
	Read(ctx context.Context, path string, opt ingest.Options) (ingest.Granule, error)
}
