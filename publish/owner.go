package publish

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Owner is the state that a place belongs to. The zero Owner is nobody.
type Owner struct {
	State string    `json:"state"` // identity of the state, made at random once
	Epoch int       `json:"epoch"` // raised by every takeover: the higher one delivers
	Since time.Time `json:"since"`
}

// Place is where a sink takes products, as something that belongs to one
// state: two that publish into one folder, prefix or topic would give one
// revision two files.
type Place interface {
	// Owner returns whom the place belongs to, fresh from there.
	Owner(ctx context.Context) (Owner, error)
	// Claim says that the place belongs to o from now on. It does not ask whom
	// it belonged to.
	Claim(ctx context.Context, o Owner) error
	// Holdings calls each with what receivers see of every product that has
	// changed since a time, or for longer: a place may not know when.
	Holdings(ctx context.Context, since time.Time, each func(Holding) error) error
}

// ErrForeign says that a place belongs to another state, or that this one was
// fenced off by a later epoch.
var ErrForeign = errors.New("belongs to another state")

// ErrMarker says that what tells whose a place is cannot be read.
var ErrMarker = errors.New("it does not say whose it is; 'lacuna publish takeover --config FILE --why TEXT' writes it anew")

// Admits returns nil where a state may publish to a place, or why not, with
// ErrForeign. there is what the place says; a place of nobody admits any.
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
