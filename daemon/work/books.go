package work

import (
	"context"
	"time"

	"lacuna/ledger"
)

// Books are the parts of the ledger that a worker reads and writes. Every call
// that changes a row is one transaction, on the disk when it returns.
type Books interface {
	GranuleBook
	TimeBook
	GridBook
	RevisionBook
	SkillBook
}

// GranuleBook gives the granules to be filled, and records their states.
type GranuleBook interface {
	FirstPending(ctx context.Context, dataset string, n int) ([]ledger.Granule, error)
	Window(ctx context.Context, dataset string, from, to time.Time) ([]ledger.Granule, error)
	FetchedAt(ctx context.Context, g ledger.Granule) (time.Time, error)
	Starts(ctx context.Context, dataset string, from time.Time) ([]ledger.Start, error)
	AddAbsence(ctx context.Context, a ledger.Absence, at time.Time) (added bool, err error)
	Place(ctx context.Context, id int64, p ledger.Placement, at time.Time) (reopened int, err error)
	Advance(ctx context.Context, id int64, to ledger.State, at time.Time) error
	Quarantine(ctx context.Context, id int64, reason string, at time.Time) error
	Retry(ctx context.Context, id int64, spoolPath, why string, at time.Time) error
}

// TimeBook gives the times of a dataset's fields.
type TimeBook interface {
	LatestTimes(ctx context.Context, dataset string, n int) ([]time.Time, error)
	CountTimes(ctx context.Context, dataset string) (int, error)
}

// GridBook counts the votes of granules on the grid of their dataset.
type GridBook interface {
	VoteGrid(ctx context.Context, v ledger.Vote, at time.Time) (ledger.Standing, error)
	Grid(ctx context.Context, dataset string) (g ledger.Grid, known bool, err error)
	Regained(ctx context.Context, dataset string) ([]ledger.Granule, error)
	DropVote(ctx context.Context, id int64) error
}

// RevisionBook gives the reopened products, and numbers new revisions.
type RevisionBook interface {
	DueReopening(ctx context.Context, dataset string, lane ledger.Lane, at time.Time) (r ledger.Reopening, ok bool, err error)
	Reopen(ctx context.Context, r ledger.Reopening, p ledger.Placement, at time.Time) (ok bool, err error)
	NextReopening(ctx context.Context, dataset string, at time.Time) (due time.Time, ok bool, err error)
	PostponeReopening(ctx context.Context, id int64, now time.Time, wait time.Duration) error
	EndReopening(ctx context.Context, r ledger.Reopening, at time.Time) error
	LastGood(ctx context.Context, dataset, granule string) (g ledger.Granule, ok bool, err error)
	Current(ctx context.Context, dataset, granule string) (p ledger.Publication, ok bool, err error)
	Revise(ctx context.Context, r ledger.Revision, at time.Time) (ledger.Granule, error)
	Renumber(ctx context.Context, id int64, t ledger.Taken) (ledger.Granule, error)
}

// SkillBook gives the granules to be scored, and records the scores.
type SkillBook interface {
	NextSkill(ctx context.Context, dataset string) (due ledger.DueSkill, ok bool, err error)
	SkipSkill(ctx context.Context, id int64, why string, at time.Time) error
	EndSkill(ctx context.Context, id int64, s ledger.Skill, at time.Time) error
}
