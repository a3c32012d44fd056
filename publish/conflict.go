package publish

import (
	"errors"
	"fmt"
	"time"
)

// ErrConflict says that a revision is there with other bytes. A revision has
// one file for ever, so the newer bytes need another number.
var ErrConflict = errors.New("another file has this revision")

// Conflict is the error for a revision whose number other bytes already have in
// a sink or a store. It wraps ErrConflict, and ErrPermanent, for trying again
// does not cure it.
type Conflict struct {
	ID      string // revision that was to be published
	SHA256  string // hash of its bytes
	There   string // sha256 of the bytes that have the revision
	Highest int    // highest revision of the product that is known there
}

// Error implements error.
func (c *Conflict) Error() string {
	return fmt.Sprintf("%v: %s is there with sha256 %s, not %s; the newer bytes need a revision above %d",
		ErrConflict, c.ID, c.There, c.SHA256, c.Highest)
}

// Unwrap makes errors.Is find both.
func (c *Conflict) Unwrap() []error { return []error{ErrConflict, ErrPermanent} }

// Holding is the highest revision of a product that a sink knows.
type Holding struct {
	Dataset   string
	Granule   string
	Revision  int
	SHA256    string // empty: not known, as of a tombstone
	Retracted bool
	At        time.Time // when it was published or retracted; zero where the sink does not keep it
}

// Key names the product as Product.Key does.
func (h Holding) Key() string { return h.Dataset + "/" + h.Granule }

// Differs reports whether two hashes are known and not the same.
func Differs(a, b string) bool { return a != "" && b != "" && a != b }

// Conflict returns a *Conflict where m has the revision of p with other bytes,
// or nil.
func (m Manifest) Conflict(p Product) error {
	e, known := m.Entry(p.Granule)
	if !known {
		return nil
	}
	there := ""
	if e.Revision == p.Revision {
		there = e.SHA256
	}
	for _, s := range e.Superseded {
		if s.Revision == p.Revision {
			there = s.SHA256
		}
	}
	if !Differs(there, p.SHA256) {
		return nil
	}
	return &Conflict{ID: p.ID(), SHA256: p.SHA256, There: there, Highest: max(e.Revision, p.Revision)}
}

// Holdings returns the holding of every product in m.
func (m Manifest) Holdings() []Holding {
	all := make([]Holding, len(m.Products))
	for i, e := range m.Products {
		all[i] = Holding{Dataset: m.Dataset, Granule: e.Granule, Revision: e.Revision, SHA256: e.SHA256, Retracted: e.Retracted}
	}
	return all
}
