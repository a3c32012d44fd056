package fetch

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Lane is the priority of a download.
type Lane int

// The lanes, the first to go first.
const (
	Live     Lane = iota // days within the look-back
	Backfill             // older days, fetched while no live granule waits
)

// String names the lane for people.
func (l Lane) String() string {
	if l == Backfill {
		return "backfill"
	}
	return "live"
}

// Action is the next step for an object, and the reason.
type Action struct {
	Kind   Kind
	Object Object
	Known  Known  // the record of its name; zero: none
	From   string // where Kind is Moved: the recorded name with the same bytes
	Lane   Lane
	Why    string // for people
}

// listing is a listing of an archive with the question that it answers.
type listing struct {
	objects  []Object
	complete bool // nothing of the scope is missing
	scope    Scope
	live     Days
	backfill Days
}

// decide compares a listing with the record and returns the actions, in the
// order of names. Unchanged objects need none and are left out. It fails only
// where known does.
//
// The bytes decide, as far as the archive gives their hash: an object with a
// new time and an old hash is touched, a new name with the hash of a name that
// is gone has moved, and neither is downloaded. Where the archive gives none,
// the download decides.
func decide(l listing, known iter.Seq2[Known, error]) ([]Action, error) {
	slices.SortFunc(l.objects, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), b.ModTime.Compare(a.ModTime))
	})
	// A listing that has a name twice is wrong; the newer entry is used.
	l.objects = slices.CompactFunc(l.objects, func(a, b Object) bool { return a.Name == b.Name })
	var actions []Action
	add := func(a Action, act bool) {
		if act {
			actions = append(actions, a)
		}
	}
	rest := l.objects
	orphans := map[string]Known{} // recorded and no longer listed, by content
	for k, err := range known {
		if err != nil {
			return nil, err
		}
		for len(rest) > 0 && rest[0].Name < k.Name {
			add(l.unknown(rest[0]))
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].Name == k.Name {
			add(l.compare(rest[0], k))
			rest = rest[1:]
			continue
		}
		a, gone := l.missing(k)
		add(a, gone)
		if tag := k.contentTag(); tag != "" && (gone || !k.Vanished.IsZero()) {
			orphans[tag] = k
		}
	}
	for _, o := range rest {
		add(l.unknown(o))
	}
	return adopt(actions, orphans), nil
}

// unknown decides about a name that is not on record.
func (l listing) unknown(o Object) (Action, bool) {
	a := Action{Kind: New, Object: o, Why: "not seen before"}
	return l.place(a), true
}

// compare decides about a name that is listed and on record.
func (l listing) compare(o Object, k Known) (Action, bool) {
	a := Action{Object: o, Known: k}
	same, why := sameContent(o, k)
	switch {
	case same && listedAlike(o, k.Object) && k.Vanished.IsZero():
		return Action{}, false
	case same && !k.Vanished.IsZero():
		a.Kind, a.Why = Returned, "listed again, the same bytes"
		return a, true
	case same:
		a.Kind, a.Why = Touched, why
		return a, true
	}
	a.Kind, a.Why = Changed, why
	return l.place(a), true
}

// missing decides about a name that is on record and not listed. An incomplete
// listing, or one that was not asked for the name, says nothing about it.
func (l listing) missing(k Known) (Action, bool) {
	// The day is looked for last: an archive that drops what is old leaves thousands
	// of such names behind.
	if !k.Vanished.IsZero() || !l.complete || !l.scope.Holds(k.Name) || k.ModTime.Before(l.scope.Since) {
		return Action{}, false
	}
	if day, dated := k.day(); dated && day.Before(dayOf(l.scope.Since)) {
		return Action{}, false
	}
	return Action{Kind: Vanished, Object: k.Object, Known: k, Why: "no longer listed"}, true
}

// place puts a download into its lane, or marks it as outside the days asked
// for.
func (l listing) place(a Action) Action {
	day, dated := a.Object.day()
	switch {
	case l.live.IsZero() || dated && l.live.Holds(day):
		a.Lane = Live
	case dated && !l.backfill.IsZero() && l.backfill.Holds(day):
		a.Lane = Backfill
	case !dated:
		a.Lane = Live // better one too many than a granule that nobody asks for
	default:
		a.Kind, a.Why = Outside, fmt.Sprintf("of %s, outside the days asked for", day.Format(time.DateOnly))
	}
	return a
}

// adopt turns new names whose content is that of a name that is gone into
// moves.
func adopt(actions []Action, orphans map[string]Known) []Action {
	for i, a := range actions {
		if a.Kind != New && a.Kind != Outside {
			continue
		}
		from, found := orphans[contentTag(a.Object)]
		if found && sameDay(from.Name, a.Object.Name) {
			actions[i] = Action{Kind: Moved, Object: a.Object, From: from.Name, Why: "has the bytes of " + from.Name + ", which is gone"}
		}
	}
	return actions
}

// sameContent reports whether o has the bytes that k has, as far as the listing
// can tell, and the reason in words.
func sameContent(o Object, k Known) (same bool, why string) {
	md5s := o.MD5 != "" && k.MD5 != ""
	tags := o.ETag != "" && k.ETag != ""
	switch {
	case o.Size != k.Size:
		return false, fmt.Sprintf("%d bytes, was %d", o.Size, k.Size)
	case md5s && o.MD5 != k.MD5:
		return false, "another MD5"
	case md5s:
		return true, "the same MD5"
	case tags && o.ETag != k.ETag:
		return false, "another ETag"
	case tags && !strings.HasPrefix(o.ETag, weakTag):
		return true, "the same ETag"
	case !o.ModTime.Equal(k.ModTime):
		return false, "modified " + o.ModTime.UTC().Format(time.RFC3339) + ", and no hash to compare"
	}
	return true, "the same size and time"
}

// weakTag begins an ETag that stays the same when bytes change in ways that
// the server holds for immaterial.
const weakTag = "W/"

// listedAlike reports whether a listing shows a and b the same, hash and all.
func listedAlike(a, b Object) bool {
	return a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.ETag == b.ETag && a.MD5 == b.MD5
}

// multipartTag is the form of the ETag of an object that was uploaded to S3 in
// parts: a hash of hashes, equal only for equal bytes.
var multipartTag = regexp.MustCompile(`^[0-9a-f]{32}-[0-9]+$`)

// contentTag is a hash of the bytes of o that may be compared between names;
// empty where the archive gives none. Other ETags are made from times and
// inodes, and two files may share one.
func contentTag(o Object) string {
	switch {
	case o.MD5 != "":
		return fmt.Sprintf("md5 %s %d", o.MD5, o.Size)
	case multipartTag.MatchString(o.ETag):
		return fmt.Sprintf("parts %s %d", o.ETag, o.Size)
	}
	return ""
}

func (k Known) contentTag() string {
	if k.SHA256 == "" {
		return "" // its bytes were never read
	}
	return contentTag(k.Object)
}

// sameDay reports whether two names have the same day, as far as they name one.
// The same bytes for another day are another granule: some files name their day
// only in their names.
func sameDay(a, b string) bool {
	dayA, hasA := DayInName(a)
	dayB, hasB := DayInName(b)
	return hasA == hasB && dayA.Equal(dayB)
}
