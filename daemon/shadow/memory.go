package shadow

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
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
		if name := strings.ToLower(a.Name); slices.Contains(versionAttributes, name) {
			value := strings.TrimSpace(strings.Trim(fmt.Sprint(a.Value), "[]"))
			grown = m.note(name, value, g.Name, now) || grown
		}
	}
	return grown
}

// NotePath is Note for the version that the path of a granule on its archive names.
func (m *Memory) NotePath(name string, now time.Time) bool {
	return m.note("path version", VersionIn(name), path.Base(name), now)
}

func (m *Memory) note(attribute, value, granule string, now time.Time) bool {
	known := m.Attributes[attribute]
	if value == "" || slices.Contains(known, value) {
		return false
	}
	if len(known) > 0 {
		m.Changes = append(m.Changes, Change{Attribute: attribute, From: known[len(known)-1], To: value, Granule: granule, At: now})
	}
	if m.Attributes == nil {
		m.Attributes = map[string][]string{}
	}
	m.Attributes[attribute] = append(known[max(0, len(known)-mostKept):], value)
	m.Changes = m.Changes[max(0, len(m.Changes)-mostKept):]
	return true
}

// versionWord matches a version between the separators of a path: v2, V5.0, fv04.1 as
// of GHRSST, v04r00 as of NSIDC, R2022.0 as of NASA's ocean colour. Numbers alone are
// dates and tiles.
var versionWord = regexp.MustCompile(`^(?i:f?v[0-9]{1,3}(\.[0-9]{1,3}){0,2}|v[0-9]{1,2}r[0-9]{1,2}|R20[0-9]{2}(\.[0-9]{1,2})?)$`)

// VersionIn returns the versions that a path on an archive names, from the top;
// empty: none.
func VersionIn(name string) string {
	var found []string
	name = strings.TrimSuffix(name, path.Ext(name))
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("/_- ", r) }) {
		if versionWord.MatchString(word) && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return strings.Join(found, " ")
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
