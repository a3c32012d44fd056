// Package publish defines a product as receivers see it, and delivers it to
// them.
//
// A Sink takes products to one place: a folder, a bucket, an FTP or SFTP server, a Zarr store, a Kafka topic. A
// Dispatcher delivers the products of a Queue to one sink, in order per
// dataset, and tries again for as long as the sink is away. Delivery is at
// least once and a sink is idempotent, so that a receiver sees each revision of
// a product exactly once, whatever was killed in between.
//
// Package publish knows nothing of grids, models or databases. To it a product
// is a file with a hash, a revision and a description; the caller provides the
// queue that lasts through a crash.
package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Modes of a product.
const (
	NearRealTime = "near-real-time" // sees past days only
	Delayed      = "delayed"        // sees later days too
)

// Inputs of a product.
const (
	Seen       = "observed"    // a granule with observations
	CloudedOut = "clouded-out" // a granule without one
	NoGranule  = "no-granule"  // none: the archive had no granule of its time
)

// Product is one revision of a product: a complete file in its place, and its
// description for receivers.
type Product struct {
	Dataset    string    `json:"dataset"`
	Granule    string    `json:"granule"` // the input it was made from; with Dataset the product's identity
	Name       string    `json:"name"`    // name of the file, with its ending
	Time       time.Time `json:"time"`    // time of the first field
	Revision   int       `json:"revision"`
	Supersedes int       `json:"supersedes,omitempty"` // the revision that this one replaces; 0: none

	Path   string `json:"path"` // path of the file on the machine of the publisher
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`

	Members *Members `json:"members,omitempty"` // its ensemble, in a file of its own; nil: none

	// BBox is west, south, east, north in degrees, as GeoJSON has it: where
	// the grid crosses the antimeridian west is greater than east.
	BBox     [4]float64 `json:"bbox"`
	Variable string     `json:"variable"`
	Units    string     `json:"units"`

	Model string `json:"model"`
	Seed  uint64 `json:"seed"`
	Trust *Trust `json:"trust,omitempty"` // how far a model was followed that was not judged on the dataset; nil: all the way, or there is none
	// Sampling is how the networks of the model filled it; nil: they had no part.
	Sampling *Sampling `json:"sampling,omitempty"`
	Refused  Refusals  `json:"refused,omitempty"` // observations that tests refused, and that were filled
	Mode     string    `json:"mode"`              // NearRealTime or Delayed
	// Input is Seen, CloudedOut or NoGranule; empty: not told, as before there
	// were products without an observation.
	Input string `json:"input,omitempty"`

	CoverageBefore  float64 `json:"coverage_before"`  // share of the sea with a value, 0..1
	CoverageAfter   float64 `json:"coverage_after"`   // the same with the gaps filled
	MeanUncertainty float64 `json:"mean_uncertainty"` // mean over the filled cells, as in the file: in Units or of their log10

	Created   time.Time         `json:"created"`            // time of the revision
	Published time.Time         `json:"published,omitzero"` // when upstream published the granule; zero: not known
	Fetched   time.Time         `json:"fetched,omitzero"`   // when the granule was fetched; zero: not known
	Filled    time.Time         `json:"filled,omitzero"`    // when its gaps were filled; zero: not known
	Links     map[string]string `json:"links,omitempty"`

	// Retracted says that nobody should use this revision any more, and Why.
	Retracted bool   `json:"retracted,omitempty"`
	Why       string `json:"why,omitempty"`
	// Displaced says that other bytes have this revision for good: with its
	// retraction a sink forgets the hash of these.
	Displaced bool `json:"displaced,omitempty"`

	Hashed *Hashed `json:"-"` // files that need not be hashed again; nil: all are
}

// Members is the file of the members of a product: equally likely complete
// fields. It belongs to one revision of its product, is published and retracted
// with it, and has no identity of its own: the product carries the hash of its
// members, so that other members make another product.
type Members struct {
	Name   string `json:"name"`
	Path   string `json:"path"` // path of the file on the machine of the publisher
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	Count  int    `json:"count"` // number of members
}

// MembersName returns the name of the file of members of the product in a file.
func MembersName(file string) string { return strings.TrimSuffix(file, ".nc") + "_members.nc" }

// MaxRevision is the highest number that a revision can have. A granule that
// was made anew every minute would reach it after two years: a higher number is
// forged or damaged, and must not use up the numbers.
const MaxRevision = 1_000_000

// ID names a revision of a product among all others: receivers compare it to
// tell a repetition from news.
func (p Product) ID() string { return fmt.Sprintf("%s/%s/r%d", p.Dataset, p.Granule, p.Revision) }

// Key names a product whatever its revision: messages with the same key are
// received in the order in which they were sent.
func (p Product) Key() string { return p.Dataset + "/" + p.Granule }

// Check returns an error where a product lacks something to be published, or
// nil.
func (p Product) Check() error {
	switch {
	case p.Dataset == "" || p.Granule == "" || p.Name == "":
		return fmt.Errorf("%w: product without dataset, granule or name: %q", ErrPermanent, p.ID())
	case p.Revision < 1:
		return fmt.Errorf("%w: %s has no revision", ErrPermanent, p.ID())
	case p.Time.IsZero():
		return fmt.Errorf("%w: %s has no time", ErrPermanent, p.ID())
	case p.Members != nil && (p.Members.Name != MembersName(p.Name) || p.Members.Count < 1):
		return fmt.Errorf("%w: %s has %d members in %q, not in %q", ErrPermanent, p.ID(), p.Members.Count, p.Members.Name, MembersName(p.Name))
	}
	return nil
}

// Sink takes products to one place.
//
// What every implementation guarantees, and sinktest checks:
//   - Idempotent by dataset, granule and revision: publishing or retracting
//     the same revision again changes nothing that a receiver can see.
//   - Whole or not at all: a receiver never finds part of a product, nor one
//     whose bytes differ from its SHA256. An announced product is there, and so
//     are its members; those of another revision are not.
//   - A crash between any two steps leaves a state from which doing the same
//     again comes to the same end.
//   - nil means done for good: acknowledged by the disk, the host or the
//     brokers, not queued.
//   - A revision older than one that is already there is never made current
//     again.
//   - One revision, one file, for ever: publishing, repeating or retracting a
//     revision that is there with another SHA256 changes nothing and returns
//     a *Conflict. Where only the highest revision is remembered, this holds
//     of that one, and earlier ones are not shown.
//
// An error with ErrPermanent says that the product can never be delivered as
// it is; any other that the sink is away or full and the same call may do
// later. Methods may be called from many goroutines, but never two at a time
// for the same dataset.
type Sink interface {
	// Name is short, stable over restarts and unlike that of any other sink: it
	// is the key of the queue.
	Name() string
	// Publish makes a revision of a product visible to receivers.
	Publish(ctx context.Context, p Product) error
	// Retract tells receivers that a revision must not be used any more and why
	// (p.Why), and takes it away where it can be taken away. Retracting an
	// unpublished revision is no error.
	Retract(ctx context.Context, p Product) error
}

// ErrPermanent marks a failure that trying again will not cure: a product whose
// file is gone, a message larger than the topic takes. Such a delivery is set
// aside with its reason, and the queue goes on behind it.
var ErrPermanent = errors.New("cannot be delivered as it is")
