package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"lacuna/daemon/gridpin"
	"lacuna/internal/faults"
	"lacuna/pipeline/field"
)

// GridStatus is the grid of a dataset, with the votes and changes behind it.
type GridStatus struct {
	Dataset string    `json:"dataset"`
	Grid    string    `json:"grid,omitempty"` // empty: none yet
	Since   time.Time `json:"since,omitzero"`
	Why     string    `json:"why,omitempty"`
	Settled bool      `json:"settled"` // no granule changes it any more
	// Agree is the number of granules that voted for it: at most Needed, which
	// settles it.
	Agree   int          `json:"agree"`
	Needed  int          `json:"needed"`
	Others  []GridCount  `json:"others"`
	Pin     string       `json:"pin,omitempty"`        // the grid as the configuration would name it
	Pinned  string       `json:"configured,omitempty"` // the grid that the configuration names
	Changes []GridChange `json:"changes"`              // the latest first
}

// GridCount is the number of granules that were set aside on another grid.
type GridCount struct {
	Grid     string `json:"grid"`
	Granules int    `json:"granules"`
}

// GridChange is a change of the grid of a dataset, with its reason.
type GridChange struct {
	At   time.Time `json:"at"`
	Grid string    `json:"grid,omitempty"` // empty: it was reset
	Why  string    `json:"why"`
}

// shownChanges bounds the list of changes: a vote has a few at most.
const shownChanges = 20

// Grids returns the grid of a dataset, or of all where its name is empty.
func (o *Operations) Grids(ctx context.Context, dataset string) ([]GridStatus, error) {
	sets, err := o.cfg.named(dataset)
	if err != nil {
		return nil, err
	}
	var all []GridStatus
	for _, set := range sets {
		s, err := o.grid(ctx, set)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (o *Operations) grid(ctx context.Context, set Dataset) (GridStatus, error) {
	s := GridStatus{Dataset: set.Name, Needed: gridpin.SettledVotes, Others: []GridCount{}, Changes: []GridChange{}}
	if set.Grid != nil {
		s.Pinned = set.Grid.String()
	}
	grid, known, err := o.book.Grid(ctx, set.Name)
	if err != nil {
		return s, err
	}
	if known {
		s.Grid, s.Since, s.Why = grid.Fingerprint, grid.Since, grid.Why
		var axes field.Grid
		if err := json.Unmarshal([]byte(grid.JSON), &axes); err == nil && len(axes.Lat) > 0 && len(axes.Lon) > 0 {
			s.Pin = gridpin.Of(axes).String()
		}
	}
	votes, err := o.book.GridVotes(ctx, set.Name)
	if err != nil {
		return s, err
	}
	for _, v := range votes {
		if v.Current {
			s.Agree = v.Granules
			continue
		}
		s.Others = append(s.Others, GridCount{Grid: v.Fingerprint, Granules: v.Granules})
	}
	s.Settled = set.Grid != nil || known && s.Agree >= gridpin.SettledVotes
	changes, err := o.book.GridChanges(ctx, set.Name, shownChanges)
	for _, c := range changes {
		s.Changes = append(s.Changes, GridChange{At: c.Since, Grid: c.Fingerprint, Why: c.Why})
	}
	return s, err
}

// GridReset is a grid that was forgotten.
type GridReset struct {
	Dataset string `json:"dataset"`
	Grid    string `json:"grid,omitempty"` // the grid before; empty: none
	Again   int    `json:"taken_up_again"` // number of granules that had been set aside for their grid
	Why     string `json:"why"`
}

// ResetGrid forgets the grid of a dataset, so that its next granules vote anew,
// and has the granules that were set aside for their grid taken up again. Its
// products stay. The name may be empty where there is one dataset.
func (o *Operations) ResetGrid(ctx context.Context, dataset, why string) (GridReset, error) {
	why = strings.TrimSpace(why)
	if why == "" {
		return GridReset{}, errors.New("a reset needs a reason: it is kept in the journal")
	}
	sets, err := o.cfg.named(dataset)
	if err != nil {
		return GridReset{}, err
	}
	if len(sets) != 1 {
		return GridReset{}, fmt.Errorf("%w: there are %d datasets, name the one whose grid is to be reset", faults.ErrConfig, len(sets))
	}
	before, _, err := o.book.Grid(ctx, sets[0].Name)
	if err != nil {
		return GridReset{}, err
	}
	again, err := o.book.ForgetGrid(ctx, sets[0].Name, why, o.now())
	return GridReset{Dataset: sets[0].Name, Grid: before.Fingerprint, Again: again, Why: why}, err
}
