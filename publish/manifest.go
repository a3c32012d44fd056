package publish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Manifest lists the products of one day of a dataset, for receivers of files:
// the current revision of each, and the retracted ones. It is a JSON file
// beside the products.
type Manifest struct {
	Dataset  string  `json:"dataset"`
	Day      string  `json:"day"` // YYYY-MM-DD, UTC
	Products []Entry `json:"products"`
}

// Entry is a product in a manifest.
type Entry struct {
	Granule         string       `json:"granule"`
	File            string       `json:"file"`             // beside the manifest
	Absent          bool         `json:"absent,omitempty"` // the file must not be read: it is being replaced, or its retention time is over
	Revision        int          `json:"revision"`
	Time            time.Time    `json:"time"`
	Created         time.Time    `json:"created"`
	Mode            string       `json:"mode"`
	Input           string       `json:"input,omitempty"` // observed, clouded-out or no-granule; empty: not told
	Size            int64        `json:"size"`
	SHA256          string       `json:"sha256"`
	QuickLook       string       `json:"quick_look,omitempty"` // beside the manifest
	Members         *EntryFile   `json:"members,omitempty"`    // its ensemble; nil: none
	Model           string       `json:"model"`
	Trust           *Trust       `json:"trust,omitempty"`    // how far it was followed; nil: all the way
	Sampling        *Sampling    `json:"sampling,omitempty"` // how its networks filled it; nil: they had no part
	Refused         Refusals     `json:"refused,omitempty"`  // observations that tests refused
	BBox            [4]float64   `json:"bbox"`
	CoverageBefore  float64      `json:"coverage_before"`
	CoverageAfter   float64      `json:"coverage_after"`
	MeanUncertainty float64      `json:"mean_uncertainty"`
	Retracted       bool         `json:"retracted,omitempty"`
	Why             string       `json:"why,omitempty"`
	Superseded      []Superseded `json:"superseded,omitempty"` // earlier revisions, oldest first
}

// EntryFile is the file of members in a manifest.
type EntryFile struct {
	File   string `json:"file"` // beside the manifest
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Count  int    `json:"count"` // number of members
}

// Superseded is a revision that a later one has replaced.
type Superseded struct {
	Revision int    `json:"revision"`
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
	File     string `json:"file,omitempty"` // name of its file while it was current; empty: that of the current one
}

// Former returns the names that the file of e had in earlier revisions and has no
// more: those of a template that tells revisions apart.
func (e Entry) Former() []string {
	var names []string
	for _, s := range e.Superseded {
		if s.File != "" && s.File != e.File {
			names = append(names, s.File)
		}
	}
	return names
}

// FileOf returns the name that the file of a revision of e has, or had.
func (e Entry) FileOf(revision int) string {
	for _, s := range e.Superseded {
		if s.Revision == revision && s.File != "" {
			return s.File
		}
	}
	return e.File
}

// EntryOf returns the manifest entry of p.
func EntryOf(p Product) Entry {
	e := Entry{
		Granule: p.Granule, File: p.Name, Revision: p.Revision, Time: p.Time.UTC(), Created: p.Created.UTC(), Mode: p.Mode, Input: p.Input,
		Size: p.Size, SHA256: p.SHA256, Model: p.Model, Trust: p.Trust, Sampling: p.Sampling, Refused: p.Refused, BBox: p.BBox, CoverageBefore: p.CoverageBefore,
		CoverageAfter: p.CoverageAfter, MeanUncertainty: p.MeanUncertainty,
	}
	if m := p.Members; m != nil {
		e.Members = &EntryFile{File: m.Name, Size: m.Size, SHA256: m.SHA256, Count: m.Count}
	}
	return e
}

// Withdrawn returns e as it is while its files must not be read.
func (e Entry) Withdrawn() Entry {
	e.Absent, e.QuickLook, e.Members = true, "", nil
	return e
}

// Live reports whether the file of e is there to be used.
func (e Entry) Live() bool { return !e.Absent && !e.Retracted }

// ParseManifest reads the form that Encode writes.
func ParseManifest(text []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	return m, nil
}

// Encode returns m as the text of a file.
func (m Manifest) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	return append(text, '\n'), nil
}

// Entry returns the entry of a granule's product.
func (m Manifest) Entry(granule string) (Entry, bool) {
	i := m.find(granule)
	if i < 0 {
		return Entry{}, false
	}
	return m.Products[i], true
}

// Owner returns the granule whose product has a file name. A retracted one has none
// any more: that of an absence goes to the granule that comes for it.
func (m Manifest) Owner(file string) (granule string, ok bool) {
	for _, e := range m.Products {
		if e.File == file && !e.Retracted {
			return e.Granule, true
		}
	}
	return "", false
}

// Add returns m with e as the product of its granule, and whether e is now the
// current one: a revision that is older than the listed one, or was retracted,
// does not become current.
func (m Manifest) Add(e Entry) (next Manifest, current bool) {
	m.Products = slices.Clone(m.Products)
	i := m.find(e.Granule)
	if i < 0 {
		m.Products = append(m.Products, e)
		slices.SortFunc(m.Products, func(a, b Entry) int {
			return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Granule, b.Granule))
		})
		return m, true
	}
	there := m.Products[i]
	switch {
	case there.Revision == e.Revision && there.Retracted:
		return m, false
	case there.Revision == e.Revision:
		e.Superseded = there.Superseded
		m.Products[i] = e
		return m, true
	case there.Revision > e.Revision:
		m.Products[i].Superseded = supersede(there, e)
		return m, false
	}
	e.Superseded = there.Superseded
	if there.File != e.File { // the names that were those of the current file are not any more
		e.Superseded = slices.Clone(there.Superseded)
		for j := range e.Superseded {
			e.Superseded[j].File = cmp.Or(e.Superseded[j].File, there.File)
		}
	}
	e.Superseded = supersede(e, there)
	m.Products[i] = e
	return m, true
}

// Retract returns m with a revision marked as retracted, and whether that was
// the current one. A product that m does not list is added as retracted, so
// that a late publication of the same revision does not bring it back.
func (m Manifest) Retract(e Entry, why string) (next Manifest, current bool) {
	there, known := m.Entry(e.Granule)
	if known && there.Revision > e.Revision {
		return m, false // a later revision is current; replaced ones are out of use anyway
	}
	if !known || there.Revision < e.Revision {
		m, _ = m.Add(e)
	} else {
		m.Products = slices.Clone(m.Products)
	}
	i := m.find(e.Granule)
	m.Products[i].QuickLook, m.Products[i].Members, m.Products[i].Retracted, m.Products[i].Why = "", nil, true, why
	return m, true
}

// Withdraw returns m with the revision p, whose entry is e, retracted, and
// whether that was the current one; where other bytes have that revision, a
// *Conflict, unless that is why it is withdrawn.
func (m Manifest) Withdraw(p Product, e Entry) (next Manifest, current bool, err error) {
	err = m.Conflict(p)
	switch {
	case p.Displaced && err != nil:
		return m, false, nil
	case err != nil:
		return m, false, err
	case p.Displaced:
		next, current = m.displace(e, p.Why)
	default:
		next, current = m.Retract(e, p.Why)
	}
	return next, current, nil
}

// displace returns m with a revision retracted whose number other bytes have
// for good: the hash of the retracted bytes is forgotten.
func (m Manifest) displace(e Entry, why string) (next Manifest, current bool) {
	there, known := m.Entry(e.Granule)
	switch {
	case !known || there.Revision < e.Revision:
		return m, false // it was never here
	case there.Revision == e.Revision:
		m, current = m.Retract(e, why)
	default:
		m.Products = slices.Clone(m.Products)
	}
	i := m.find(e.Granule)
	if current {
		m.Products[i].SHA256, m.Products[i].Size = "", 0
	}
	m.Products[i].Superseded = slices.DeleteFunc(slices.Clone(m.Products[i].Superseded), func(s Superseded) bool {
		return s.Revision == e.Revision && s.SHA256 == e.SHA256
	})
	return m, current
}

func (m Manifest) find(granule string) int {
	return slices.IndexFunc(m.Products, func(e Entry) bool { return e.Granule == granule })
}

// supersede returns the earlier revisions of current with e among them.
func supersede(current, e Entry) []Superseded {
	all := current.Superseded
	if e.SHA256 == "" {
		return all // it was displaced: other bytes have its number
	}
	if slices.ContainsFunc(all, func(s Superseded) bool { return s.Revision == e.Revision }) {
		return all
	}
	old := Superseded{Revision: e.Revision, SHA256: e.SHA256, Size: e.Size}
	if e.File != current.File {
		old.File = e.File
	}
	all = append(slices.Clone(all), old)
	slices.SortFunc(all, func(a, b Superseded) int { return a.Revision - b.Revision })
	return all
}

// Newest returns the live entry of m with the latest time.
func (m Manifest) Newest() (Entry, bool) {
	for _, e := range slices.Backward(m.Products) {
		if e.Live() {
			return e, true
		}
	}
	return Entry{}, false
}

// ManifestName returns the name of the manifest of the day of t, in its
// folder.
func ManifestName(t time.Time) string { return t.UTC().Format("20060102") + manifestEnding }

// IsManifest reports whether a file of a folder is a manifest.
func IsManifest(name string) bool { return strings.HasSuffix(name, manifestEnding) }

const manifestEnding = ".manifest.json"

// Day returns the day of t as manifests write it.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
