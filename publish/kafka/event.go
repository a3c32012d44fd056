package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"lacuna/publish"

	kafkago "github.com/segmentio/kafka-go"
)

// SchemaVersion is the version of the messages that this package writes. It
// changes when a reader of the old version would misunderstand the new one;
// fields may be added without.
const SchemaVersion = 1

// Types of events, as in ce_type.
const (
	TypePublished = "lacuna.product.published.v1"
	TypeRetracted = "lacuna.product.retracted.v1"
)

// Event is the message of the events topic on one revision of a product. It is
// the body of a published event; in a retraction only the fields up to Why are
// set.
type Event struct {
	ID        string `json:"-"` // ce_id: equal only where the body is equal; see Revised
	Retracted bool   `json:"-"` // from ce_type
	Why       string `json:"-"` // ce_why: the reason of a retraction

	Dataset    string    `json:"dataset"`
	Granule    string    `json:"granule"`
	Revision   int       `json:"revision"`
	Supersedes int       `json:"supersedes,omitempty"` // 0: none
	Created    time.Time `json:"created"`
	Published  time.Time `json:"published,omitzero"` // when upstream published the granule; zero: not known
	Fetched    time.Time `json:"fetched,omitzero"`   // when the granule was fetched; zero: not known
	Filled     time.Time `json:"filled,omitzero"`    // when its gaps were filled; zero: not known

	File File      `json:"file"`
	Data Placement `json:"data"`

	Time     time.Time  `json:"time"` // time of the first field
	BBox     [4]float64 `json:"bbox"` // west, south, east, north in degrees
	Variable string     `json:"variable"`
	Units    string     `json:"units"`
	Model    string     `json:"model"`
	Seed     uint64     `json:"seed,string"` // as text: JSON readers round numbers above 2^53

	// Trust is how far a model was followed that was not judged on the dataset;
	// nil: all the way, or there is none.
	Trust *publish.Trust `json:"trust,omitempty"`
	// Sampling is how the networks of the model filled it; nil: they had no part.
	Sampling *publish.Sampling `json:"sampling,omitempty"`
	Refused  publish.Refusals  `json:"refused,omitempty"` // observations that tests refused, by test; nil: none was made
	Mode     string            `json:"mode"`
	Input    string            `json:"input,omitempty"` // observed, clouded-out or no-granule; empty: not told

	Coverage        Coverage          `json:"coverage"`
	MeanUncertainty *float64          `json:"mean_uncertainty"` // null: not known
	Links           map[string]string `json:"links,omitempty"`

	// Members is the file of the product's members. Its bytes are not on the
	// data topic: they are many times those of the product, and the link
	// "members" leads to them.
	Members *Members `json:"members,omitempty"`
}

// Members is the ensemble of a product as a file.
type Members struct {
	File
	Count int `json:"count"` // number of members
}

// File is the product as a file.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Placement is the position of the parts of a product. Between the two offsets
// there may be messages of other products and repetitions of a part.
type Placement struct {
	Topic       string `json:"topic"`
	Partition   int    `json:"partition"`
	FirstOffset int64  `json:"first_offset"`
	LastOffset  int64  `json:"last_offset"`
	Parts       int    `json:"parts"`
}

// Coverage is the share of the sea that has a value, 0 to 1.
type Coverage struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// newEvent describes p, whose parts lie at data.
func newEvent(p publish.Product, data Placement) Event {
	e := Event{
		ID: p.ID(), Dataset: p.Dataset, Granule: p.Granule, Revision: p.Revision, Supersedes: p.Supersedes,
		Created: p.Created.UTC(), Published: p.Published.UTC(), Fetched: p.Fetched.UTC(), Filled: p.Filled.UTC(), File: File{Name: p.Name, Size: p.Size, SHA256: p.SHA256}, Data: data,
		Time: p.Time.UTC(), BBox: p.BBox, Variable: p.Variable, Units: p.Units, Model: p.Model, Seed: p.Seed, Trust: p.Trust, Sampling: p.Sampling, Refused: p.Refused, Mode: p.Mode, Input: p.Input,
		Coverage: Coverage{Before: p.CoverageBefore, After: p.CoverageAfter}, Links: p.Links,
	}
	if u := p.MeanUncertainty; !math.IsNaN(u) && !math.IsInf(u, 0) {
		e.MeanUncertainty = &u
	}
	if m := p.Members; m != nil {
		e.Members = &Members{File: File{Name: m.Name, Size: m.Size, SHA256: m.SHA256}, Count: m.Count}
	}
	return e
}

// newRetraction returns the event that p must not be used.
func newRetraction(p publish.Product) Event {
	return Event{
		ID: p.ID() + "/retracted", Retracted: true, Why: p.Why,
		Dataset: p.Dataset, Granule: p.Granule, Revision: p.Revision, Created: p.Created.UTC(), File: File{Name: p.Name},
	}
}

// againID returns the id of a product that is sent once more at a time.
func againID(p publish.Product, at time.Time) string {
	return p.ID() + "/again-" + at.UTC().Format("20060102T150405.000000000Z")
}

var againSuffix = regexp.MustCompile(`(/r[0-9]+)/again-[0-9]{8}T[0-9]{6}\.[0-9]{9}Z$`)

// Revised names the product and its revision, and a retraction of it apart. Events
// that were sent once more have another id, and this is the same.
func (e Event) Revised() string { return againSuffix.ReplaceAllString(e.ID, "$1") }

// Key names the product whatever its revision.
func (e Event) Key() string { return e.Dataset + "/" + e.Granule }

// Type is the event's ce_type.
func (e Event) Type() string {
	if e.Retracted {
		return TypeRetracted
	}
	return TypePublished
}

// message encodes e in the binary mode of the Kafka binding of CloudEvents 1.0.
func (e Event) message(source string) (kafkago.Message, error) {
	m := kafkago.Message{Key: []byte(e.Key())}
	add := func(name, value string) {
		m.Headers = append(m.Headers, kafkago.Header{Key: name, Value: []byte(value)})
	}
	add("ce_specversion", "1.0")
	add("ce_id", e.ID)
	add("ce_type", e.Type())
	add("ce_source", source)
	add("ce_subject", e.File.Name)
	add("ce_time", e.Created.Format(time.RFC3339Nano))
	add("ce_partitionkey", e.Key())
	add("ce_dataset", e.Dataset)
	add("ce_granule", e.Granule)
	add("ce_revision", strconv.Itoa(e.Revision))
	if e.Retracted {
		add("ce_why", e.Why)
		return m, nil // no value: a tombstone
	}
	add("ce_dataschema", fmt.Sprintf("urn:lacuna:schema:product-event:%d", SchemaVersion))
	add("content-type", "application/json")
	var err error
	m.Value, err = json.Marshal(e)
	return m, err
}

// ErrNotOurs marks a message of the events topic that this version cannot
// read: written by somebody else, or by a later version of Lacuna.
var ErrNotOurs = errors.New("not a message this version of Lacuna understands")

// ErrNoProduct marks a message of the events topic that is not about a product
// but about the owner of the topics. It is of no use to readers.
var ErrNoProduct = fmt.Errorf("%w: it is not about a product", ErrNotOurs)

// ParseEvent reads a message of the events topic. It refuses events that would
// be dangerous to act on, such as one with a folder in its file name.
func ParseEvent(m kafkago.Message) (Event, error) {
	h := headersOf(m)
	e := Event{Why: h["ce_why"]}
	switch kind := h["ce_type"]; {
	case kind == TypeRetracted:
		e.Retracted = true
	case kind == TypeOwner:
		return Event{}, ErrNoProduct
	case kind != TypePublished:
		return Event{}, fmt.Errorf("%w: ce_type is %q", ErrNotOurs, kind)
	case json.Unmarshal(m.Value, &e) != nil:
		return Event{}, fmt.Errorf("%w: %s has a body that is not JSON of this schema", ErrNotOurs, h["ce_id"])
	}
	if e.Retracted {
		e.Dataset, e.Granule, e.File.Name = h["ce_dataset"], h["ce_granule"], h["ce_subject"]
		e.Revision, _ = strconv.Atoi(h["ce_revision"])
		e.Created, _ = time.Parse(time.RFC3339Nano, h["ce_time"])
	}
	e.ID = h["ce_id"]
	return e, e.check()
}

func (e Event) check() error {
	switch {
	case e.ID == "" || e.Revision < 1:
		return fmt.Errorf("%w: no id or revision", ErrNotOurs)
	case !plainName(e.Dataset):
		return fmt.Errorf("%w: %s has the dataset %q, which cannot be the name of a folder", ErrNotOurs, e.ID, e.Dataset)
	case !plainName(e.File.Name):
		return fmt.Errorf("%w: %s has the file name %q, which cannot be one", ErrNotOurs, e.ID, e.File.Name)
	case !e.Retracted && (e.File.Size < 0 || len(e.File.SHA256) != 64 || !e.Data.plausible()):
		return fmt.Errorf("%w: %s has a missing or impossible hash of its file or offsets of its parts", ErrNotOurs, e.ID)
	case e.Members != nil && (!plainName(e.Members.Name) || e.Members.Size < 0 || len(e.Members.SHA256) != 64 || e.Members.Count < 1):
		return fmt.Errorf("%w: %s has a missing or impossible name, hash or number of its members", ErrNotOurs, e.ID)
	}
	return nil
}

// plausible reports whether the parts can lie where p says: each has an offset
// of its own, and there is one behind the last.
func (p Placement) plausible() bool {
	return p.FirstOffset >= 0 && p.LastOffset >= p.FirstOffset && p.LastOffset < math.MaxInt64 &&
		p.Parts >= 1 && int64(p.Parts-1) <= p.LastOffset-p.FirstOffset
}

// plainName reports whether s names a file in its folder and nothing else.
func plainName(s string) bool {
	return s != "" && s[0] != '.' && path.Base(s) == s && !strings.ContainsAny(s, "\\\x00")
}

func headersOf(m kafkago.Message) map[string]string {
	h := make(map[string]string, len(m.Headers))
	for _, one := range m.Headers {
		h[one.Key] = string(one.Value)
	}
	return h
}
