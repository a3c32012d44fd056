package cmems

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Version is a version of a dataset as the catalogues describe it.
type Version struct {
	Label       string    // as in 202311
	Released    time.Time // zero: at some time in the past
	Retired     time.Time // zero: not planned
	Preparation bool      // not to be used yet
	hrefs       []string  // addresses of its files, one for each catalogue
}

// A Kind is the subject of a notice.
type Kind string

// The kinds of notices.
const (
	NewVersion    Kind = "new version"    // a newer version than the one in use is out
	ComingVersion Kind = "coming version" // a version is announced
	Retiring      Kind = "retiring"       // the version in use will be retired
	Retired       Kind = "retired"        // the version in use has been retired
	Degraded      Kind = "degraded"       // a host does not answer
)

// Notice is something an operator should know of a dataset.
type Notice struct {
	Kind    Kind
	Dataset string
	Version string    // version in question
	At      time.Time // date of release or retirement; zero: none
	Text    string    // a sentence
}

// notices compares the version in use with the others.
func notices(dataset, inUse string, versions []Version, now time.Time) []Notice {
	var found []Notice
	add := func(kind Kind, version string, at time.Time, format string, args ...any) {
		found = append(found, Notice{Kind: kind, Dataset: dataset, Version: version, At: at, Text: fmt.Sprintf(format, args...)})
	}
	for _, v := range versions {
		switch {
		case v.Label == inUse && !v.Retired.IsZero() && v.Retired.After(now):
			add(Retiring, v.Label, v.Retired, "version %s of %s, which is in use, is retired on %s", v.Label, dataset, date(v.Retired))
		case v.Label == inUse && !v.Retired.IsZero():
			add(Retired, v.Label, v.Retired, "version %s of %s, which is in use, was retired on %s; set version to another one", v.Label, dataset, date(v.Retired))
		case v.Label == inUse || v.retiredAt(now):
		case v.coming(now):
			add(ComingVersion, v.Label, v.Released, "version %s of %s is announced", v.Label, dataset)
		case v.Label > inUse:
			add(NewVersion, v.Label, v.Released, "version %s of %s is out, %s is in use; set version to change", v.Label, dataset, inUse)
		}
	}
	return found
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (v Version) retiredAt(now time.Time) bool { return !v.Retired.IsZero() && !v.Retired.After(now) }

func (v Version) coming(now time.Time) bool { return v.Preparation || v.Released.After(now) }

// choose returns the version that a new user would be given: not retired, out
// already if any is, the one that stays longest, the newest.
func choose(versions []Version, now time.Time) (Version, bool) {
	live := slices.DeleteFunc(slices.Clone(versions), func(v Version) bool { return v.retiredAt(now) })
	if len(live) == 0 {
		return Version{}, false
	}
	return slices.MinFunc(live, func(a, b Version) int {
		return cmp.Or(
			compareFalseFirst(a.coming(now), b.coming(now)),
			compareFalseFirst(!a.Retired.IsZero(), !b.Retired.IsZero()),
			b.Retired.Compare(a.Retired),
			cmp.Compare(b.Label, a.Label),
		)
	}), true
}

func compareFalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// merge adds a version that another catalogue shows, or the place it knows.
func merge(versions []Version, v Version) []Version {
	for i, known := range versions {
		if known.Label == v.Label {
			for _, href := range v.hrefs {
				if !slices.Contains(known.hrefs, href) {
					versions[i].hrefs = append(versions[i].hrefs, href)
				}
			}
			return versions
		}
	}
	return append(versions, v)
}

// itemID is dataset, version and part in the id of a catalogue item.
var itemID = regexp.MustCompile(`^(.*?)(?:_([12]\d{3}(?:0[1-9]|1[0-2])))?$`)

// parseItem splits the id of a catalogue item.
func parseItem(id string) (dataset, version, part string) {
	id, part, _ = strings.Cut(id, "--ext--")
	match := itemID.FindStringSubmatch(id)
	dataset, version = match[1], match[2]
	if version == "" {
		version = "default"
	}
	if part == "default" {
		part = ""
	}
	return dataset, version, part
}
