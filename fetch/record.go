package fetch

import (
	"context"
	"iter"
	"time"
)

// Known is the record of an object.
type Known struct {
	Object             // as it was last listed
	SHA256   string    // hash of its newest bytes, lower-case hex; empty where it was refused unread
	Aside    bool      // its newest bytes were set aside, or it was refused
	Vanished time.Time // when it was first missed; zero while it is listed
}

// Deliveries remembers the objects that were seen and handed on. It is declared
// here, where it is used; the ledger that implements it does not know this
// package.
type Deliveries interface {
	// Known yields all objects on record in the order of the bytes of their
	// names, each name once. Nothing else of the record is used meanwhile.
	Known(ctx context.Context) iter.Seq2[Known, error]
	// Holding returns the objects on record whose newest bytes have this hash.
	Holding(ctx context.Context, sha256 string) ([]Known, error)
	// Record stores changes, all or none. Where it returns nil they survive a
	// power cut.
	Record(ctx context.Context, changes ...Change) error
}

// Polls remembers when an archive was last seen whole, over restarts.
type Polls interface {
	// LastPoll returns the zero time where there was none.
	LastPoll(ctx context.Context) (time.Time, error)
	Polled(ctx context.Context, at time.Time) error
}

// Kind is a change of an object, or the next step for it.
type Kind string

// The kinds. The first two ask for a download; the others only change the
// record, or nothing.
const (
	New      Kind = "new"       // a name that was not seen before
	Changed  Kind = "changed"   // its size, tag, hash or time differs
	Arrived  Kind = "arrived"   // its bytes lie in the spool and are new under its name
	Touched  Kind = "touched"   // listed differently, the same bytes
	Moved    Kind = "moved"     // the bytes of another name, which is gone or of the same granule
	Vanished Kind = "vanished"  // no longer listed
	Returned Kind = "returned"  // listed again as it was
	SetAside Kind = "set aside" // its bytes were read and are not a granule
	Refused  Kind = "refused"   // not to be fetched: its name is unfit
	Waiting  Kind = "waiting"   // it may still be being written
	Outside  Kind = "outside"   // its day was not asked for
)

// Change is a line for the record: Arrived, Touched, Moved, Vanished, Returned,
// SetAside or Refused.
type Change struct {
	Kind    Kind
	Object  Object  // as listed; where Kind is Vanished, as last listed
	From    string  // where Kind is Moved: the recorded name with the same bytes
	Granule Granule // where Kind is Arrived or SetAside: the file
	Lane    Lane    // where Kind is Arrived or SetAside
	Reason  string  // where Kind is SetAside or Refused: the fault and its remedy
	At      time.Time
}
