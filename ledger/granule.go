package ledger

import (
	"errors"
	"slices"
	"time"
)

// State is the stage that the work on a granule has reached.
type State string

// The states, in the order of the work.
const (
	Discovered  State = "discovered"  // seen on the archive
	Fetched     State = "fetched"     // whole in the spool
	Filled      State = "filled"      // its gaps are filled
	Stored      State = "stored"      // its product is in place
	Announced   State = "announced"   // every sink has it
	Quarantined State = "quarantined" // set aside, with the reason
)

// ErrTransition says that a granule may not go from its state to the one
// asked for.
var ErrTransition = errors.New("illegal transition")

// next returns the states that may follow s.
func (s State) next() []State {
	switch s {
	case Discovered:
		return []State{Fetched, Quarantined}
	case Fetched:
		return []State{Filled, Quarantined}
	case Filled:
		return []State{Stored, Quarantined}
	case Stored:
		return []State{Announced}
	case Quarantined:
		return []State{Fetched}
	default: // announced, the end
		return nil
	}
}

func (s State) mayBecome(to State) bool { return slices.Contains(s.next(), to) }

// Object is a file on an archive as a listing shows it.
type Object struct {
	Dataset string
	Name    string
	Size    int64 // bytes
	ModTime time.Time
	ETag    string // version tag of the archive; empty where it has none
	MD5     string // hash of the bytes, lower-case hex; empty: not given
}

// Arrival is an object whose bytes lie in the spool.
type Arrival struct {
	Object
	SHA256    string
	SpoolPath string
	Lane      Lane // empty: Live
}

// Lane is the priority of the work on a granule.
type Lane string

// The lanes, the first to go first.
const (
	Live     Lane = "live"
	Backfill Lane = "backfill" // older days, worked on while no live granule waits
)

// Cause is the reason for a revision.
type Cause string

// The causes.
const (
	FromArchive Cause = "archive"    // the archive has new bytes
	Reanalysis  Cause = "reanalysis" // the same bytes, with other days around them
	Redo        Cause = "redo"       // the same bytes: somebody asked for it
)

// Product is the file that came out of a granule.
type Product struct {
	Path     string
	SHA256   string
	Observed float64 // share of the sea with a value in the granule, 0..1
	Covered  float64 // share of the sea with a value in the product, 0..1
}

// Granule is a row: a revision of a file of a dataset, which is a new content
// or the one before, to be made into a product anew.
type Granule struct {
	ID       int64
	Arrival       // SHA256 and SpoolPath are empty where it was refused unread
	Revision int  // 1, 2, 3...: counts under this name
	Absent   bool // the archive has no such granule: the row stands for its times, and SHA256 is NoContent
	Cause    Cause
	Why      string // reason for this revision; empty with FromArchive
	State    State
	Reason   string    // why it is quarantined; else empty
	First    time.Time // time of sensing of its earliest field; zero until SetTimes
	Last     time.Time // time of sensing of its latest field
	Product  Product   // zero until stored
	Recorded time.Time // when this revision became known: the time that its product carries
	Changed  time.Time // when the state last changed
}

// Event is a line of a granule's history.
type Event struct {
	State State
	At    time.Time
	Note  string
}

// Count is the number of granules of a dataset in a state.
type Count struct {
	Dataset  string
	State    State
	Granules int
}
