package publish

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Owner is the state that a place belongs to. The zero Owner is nobody.
type Owner struct {
	State string    `json:"state"` // identity of the state, made at random once
	Epoch int       `json:"epoch"` // raised by every takeover: the higher one delivers
	Since time.Time `json:"since"`
}

// Place is the destination of a sink, which belongs to one state: two states
// that publish into one folder, prefix or topic would give one revision two
// files.
type Place interface {
	// Owner reads the owner from the place.
	Owner(ctx context.Context) (Owner, error)
	// Claim makes o the owner of the place, whoever owned it before.
	Claim(ctx context.Context, o Owner) error
	// Holdings calls each with the holding of every product that has changed
	// since a time; a place that keeps no times includes older ones.
	Holdings(ctx context.Context, since time.Time, each func(Holding) error) error
}

// ErrForeign says that a place belongs to another state, or that this one was
// fenced off by a later epoch.
var ErrForeign = errors.New("belongs to another state")

// ErrMarker says that the marker of a place cannot be read.
var ErrMarker = errors.New("its owner marker cannot be read; 'lacuna publish takeover --config FILE --why TEXT' writes it anew")

// ErrAway says that a folder has lost the marker that it had: what is there now is another
// folder.
var ErrAway = errors.New("its owner marker was there and is gone: is its disk mounted? Where it was emptied on purpose, run 'lacuna publish takeover --config FILE --why TEXT'")

// Mark remembers whether the marker of a folder was seen. A mount that goes
// away leaves an empty folder behind, and what is written there is out of sight when it
// comes back. Nil remembers nothing.
type Mark struct{ seen atomic.Bool }

// Look notes whether the marker is there, and returns ErrAway where it was and is not
// any more.
func (m *Mark) Look(there bool) error {
	switch {
	case m == nil:
	case there:
		m.seen.Store(true)
	case m.seen.Load():
		return ErrAway
	}
	return nil
}

// Foldered is a place that is a folder, on a disk that may not be mounted.
type Foldered interface {
	// Folder returns its path and mark; an empty path: it is no folder after all.
	Folder() (path string, mark *Mark)
}

// Admits returns nil where a state may publish to a place, or why not, with
// ErrForeign. there is the owner of the place; a place without one admits any
// state.
func (there Owner) Admits(mine Owner) error {
	const takeOver = "stop that one and run 'lacuna publish takeover --config FILE --why TEXT' with this configuration to take it over on purpose, or name another place in the configuration"
	switch {
	case there.State == "":
		return nil
	case there.State != mine.State:
		return fmt.Errorf("it %w (%s, epoch %d, since %s; this one is %s, epoch %d): %s", ErrForeign,
			there.State, there.Epoch, there.Since.UTC().Format(time.DateTime), mine.State, mine.Epoch, takeOver)
	case there.Epoch > mine.Epoch:
		return fmt.Errorf("it %w: a later copy of this one (%s) has taken it over in epoch %d, and this one is of epoch %d: %s", ErrForeign,
			there.State, there.Epoch, mine.Epoch, takeOver)
	}
	return nil
}
