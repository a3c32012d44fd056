package shadow

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/state"
	"lacuna/pipeline/ingest"
)

// Memory is what is kept of the versions of a dataset.
type Memory struct {
	Attributes map[string][]string `json:"attributes,omitempty"` // values that version attributes have had, by name
	Changes    []Change            `json:"changes,omitempty"`    // not accepted yet
	Refused    []string            `json:"refused,omitempty"`    // versions that are not wanted
	Decisions  []Decision          `json:"decisions,omitempty"`  // the latest last
}

// Change is a version attribute with another value than before.
type Change struct {
	Attribute string    `json:"attribute"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Granule   string    `json:"granule"` // the first that has it
	At        time.Time `json:"at"`      // when that was read
}

func (c Change) String() string {
	return fmt.Sprintf("granules have %s %s since %s, and had %s before", c.Attribute, c.To, c.Granule, c.From)
}

// Decision is an operator's word on a version.
type Decision struct {
	Version  string    `json:"version"`
	Accepted bool      `json:"accepted"`
	Why      string    `json:"why"`
	At       time.Time `json:"at"`
}

// mostKept bounds values and decisions that are kept.
const mostKept = 50

// versionAttributes are the names of global attributes that tell the version of
// the processing, in lower case. Those of software and formats are not among them:
// they change without a change of the data.
var versionAttributes = []string{
	"product_version", "dataset_version", "processing_version", "reprocessing_version", "collection_version", "algorithm_version", "version",
}

// Load returns the memory of a dataset, empty where there is none.
func Load(dir state.Dir, dataset string) (Memory, error) {
	var m Memory
	_, err := state.Load(dir.Versions(dataset), &m)
	return m, err
}

// Save keeps the memory of a dataset.
func (m Memory) Save(dir state.Dir, dataset string) error {
	file := dir.Versions(dataset)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return state.Save(file, m)
}

// Note adds the version attributes of a granule and reports whether any value is
// new. The first value is taken as it is; another one is a change. Older granules
// that come late, with a value that was there before, are none.
func (m *Memory) Note(g ingest.Granule, now time.Time) bool {
	grown := false
	for _, a := range g.Source.Attrs {
		name := strings.ToLower(a.Name)
		if !slices.Contains(versionAttributes, name) {
			continue
		}
		value := strings.TrimSpace(strings.Trim(fmt.Sprint(a.Value), "[]"))
		known := m.Attributes[name]
		if value == "" || slices.Contains(known, value) {
			continue
		}
		if len(known) > 0 {
			m.Changes = append(m.Changes, Change{Attribute: name, From: known[len(known)-1], To: value, Granule: g.Name, At: now})
		}
		if m.Attributes == nil {
			m.Attributes = map[string][]string{}
		}
		m.Attributes[name] = append(known[max(0, len(known)-mostKept):], value)
		grown = true
	}
	m.Changes = m.Changes[max(0, len(m.Changes)-mostKept):]
	return grown
}

// Decide keeps an operator's word on a version. Changes of attributes are settled
// by it, either way.
func (m *Memory) Decide(d Decision) {
	m.Decisions = append(m.Decisions[max(0, len(m.Decisions)-mostKept):], d)
	m.Changes = nil
	m.Refused = slices.DeleteFunc(m.Refused, func(v string) bool { return v == d.Version })
	if !d.Accepted && d.Version != "" {
		m.Refused = append(m.Refused, d.Version)
	}
}
