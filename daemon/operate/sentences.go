package operate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/sources"
	"lacuna/internal/figure"
	"lacuna/ledger"
	"lacuna/publish"
)

// revisionLines returns the history of one revision; came is true where the one
// before it stood for a granule that was not there.
func revisionLines(g ledger.Granule, events []ledger.Event, came bool) []StoryLine {
	var lines []StoryLine
	before := ledger.State("")
	for _, e := range events {
		line := StoryLine{At: e.At, Text: fmt.Sprintf("Revision %d: %s.", g.Revision, eventSentence(g, before, e))}
		if came && e.State == ledger.Discovered {
			line.Text = fmt.Sprintf("Revision %d: the granule has come after all, %d bytes of %s.", g.Revision, g.Size, clock(g.ModTime))
		}
		if e.State == ledger.Announced {
			line.rank = 2
		}
		lines = append(lines, line)
		before = e.State
	}
	return lines
}

// eventSentence puts a line of the history into words.
func eventSentence(g ledger.Granule, before ledger.State, e ledger.Event) string {
	switch e.State {
	case ledger.Discovered:
		return causeSentence(g)
	case ledger.Fetched:
		if before == ledger.Quarantined {
			return "taken up again, because " + cmp.Or(e.Note, "an operator asked for it")
		}
		if g.Cause != ledger.FromArchive || g.Absent {
			return "queued to be filled"
		}
		return "fetched and whole in the spool, " + g.SpoolPath
	case ledger.Filled:
		if sources.IsSeries(g.Dataset) {
			return "merged with the other sources to the granule of its day"
		}
		return "its gaps are filled"
	case ledger.Stored:
		if g.Absent || g.Product.Observed == 0 {
			return fmt.Sprintf("product stored as %s; %s, and %s of the sea have a value from other days now", e.Note, nothingSeen(g), figure.Percent(g.Product.Covered))
		}
		return fmt.Sprintf("product stored as %s; %s of the sea were seen, %s have a value now",
			e.Note, figure.Percent(g.Product.Observed), figure.Percent(g.Product.Covered))
	case ledger.Announced:
		return "every sink has the product"
	case ledger.Quarantined:
		if g.Absent {
			return "no product is made: " + strings.TrimSuffix(e.Note, ".")
		}
		return "set aside because " + strings.TrimSuffix(e.Note, ".")
	}
	return strings.TrimSpace(string(e.State) + " " + e.Note)
}

// nothingSeen says why a product has no observation.
func nothingSeen(g ledger.Granule) string {
	if g.Absent {
		return "there was no granule"
	}
	return "nothing of the sea was seen"
}

// causeSentence returns the cause of a revision in words.
func causeSentence(g ledger.Granule) string {
	lane := ""
	if g.Lane == ledger.Backfill {
		lane = ", in the backfill lane"
	}
	switch {
	case g.Cause == ledger.Redo && g.Lane == ledger.Backfill:
		return "made again" + lane + ": " + g.Why
	case g.Cause == ledger.Redo:
		return "an operator asked for it to be made again: " + g.Why
	case g.Cause == ledger.Reanalysis:
		return "made again because " + g.Why
	case g.Absent:
		return "the archive has no granule of this time" + lane
	case g.SHA256 == "":
		return "seen on the archive and refused unread"
	case g.Revision > 1:
		return fmt.Sprintf("the archive replaced it by %s of %s%s", figure.Bytes(g.Size), clock(g.ModTime), lane)
	}
	return fmt.Sprintf("seen on the archive, %s of %s%s", figure.Bytes(g.Size), clock(g.ModTime), lane)
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// deliveryLines returns the deliveries and retractions in words.
func deliveryLines(deliveries []ledger.Delivery) []StoryLine {
	var lines []StoryLine
	add := func(at time.Time, format string, args ...any) {
		lines = append(lines, StoryLine{At: at, Text: fmt.Sprintf(format, args...), rank: 1})
	}
	retracted := map[int64]bool{}
	for _, d := range deliveries {
		p := d.Publication
		if !p.Retracted.IsZero() && !retracted[p.ID] {
			retracted[p.ID] = true
			add(p.Retracted, "Revision %d: retracted, because %s.", p.Revision, p.Why)
		}
		done := map[ledger.DeliveryKind]string{
			ledger.Publish: "published to", ledger.PublishAgain: "published again to", ledger.Retract: "its retraction was told to",
		}[d.Kind]
		todo := map[ledger.DeliveryKind]string{
			ledger.Publish: "be published to", ledger.PublishAgain: "be published again to", ledger.Retract: "tell its retraction to",
		}[d.Kind]
		switch d.State {
		case ledger.Delivered:
			add(d.Ended, "Revision %d: %s %s%s%s.", p.Revision, done, d.Sink, attempts(d.Attempts), modeOf(d))
		case ledger.Aside:
			add(d.Ended, "Revision %d: it could not %s %s and was set aside%s, because %s.", p.Revision, todo, d.Sink, attempts(d.Attempts), d.Problem)
		default:
			add(d.Queued, "Revision %d: waits to %s %s%s.", p.Revision, todo, d.Sink, waiting(d))
		}
	}
	return lines
}

func attempts(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" after %d attempts", n)
}

func waiting(d ledger.Delivery) string {
	if d.Attempts == 0 {
		return ""
	}
	return fmt.Sprintf("; %d attempts so far, the last one: %s", d.Attempts, d.Problem)
}

// modeOf returns the mode and the model of a delivered product in words.
func modeOf(d ledger.Delivery) string {
	var p publish.Product
	if err := json.Unmarshal([]byte(d.Publication.Body), &p); err != nil || d.Kind != ledger.Publish {
		return ""
	}
	text := fmt.Sprintf(" as %s product, filled by %s%s%s%s", p.Mode, p.Model, p.Trust, p.Sampling, p.Refused)
	if p.Supersedes > 0 {
		text += fmt.Sprintf(", in place of revision %d", p.Supersedes)
	}
	return text
}

// reopeningLines returns the reopenings and their outcomes in words.
func reopeningLines(all []ledger.Reopening) []StoryLine {
	var lines []StoryLine
	for _, r := range all {
		lines = append(lines, StoryLine{At: r.Opened, Text: fmt.Sprintf("Re-opened because %s%s.", r.Why, more(r.Neighbours))})
		if r.Outcome == "" {
			continue
		}
		text := map[ledger.Outcome]string{
			ledger.Revised:   "Looked at again: a new revision is worth it",
			ledger.Unchanged: "Looked at again: nothing changes beyond noise, so it was not published again",
			ledger.Overtaken: "Not looked at again: a newer revision sees the same",
			ledger.Dropped:   "Not looked at again",
		}[r.Outcome]
		if r.Change > 0 {
			text += fmt.Sprintf(" (largest change %.2f standard deviations)", r.Change)
		}
		if r.Note != "" {
			text += ": " + r.Note
		}
		lines = append(lines, StoryLine{At: r.Ended, Text: cmp.Or(text, string(r.Outcome)) + "."})
	}
	return lines
}

// more counts the neighbours beside the one that a reopening names.
func more(neighbours int) string {
	if neighbours < 2 {
		return ""
	}
	return fmt.Sprintf(" (and %d neighbours before it)", neighbours-1)
}

// toDo returns the advice to an operator about a granule.
func (o *Operations) toDo(g ledger.Granule, deliveries []ledger.Delivery, reopenings []ledger.Reopening) string {
	name := filepath.Base(g.Name)
	switch g.State {
	case ledger.Quarantined:
		if g.Absent {
			return "Nothing."
		}
		if g.SHA256 == "" {
			return "Have the file put on the archive under another name; it is refused once, and not asked for again."
		}
		return fmt.Sprintf("Mend the cause, then 'lacuna quarantine retry %s'; or wait until the archive replaces it. The file is %s.",
			name, cmp.Or(o.quarantine().File(g), "gone"))
	case ledger.Discovered, ledger.Fetched, ledger.Filled:
		if g.State == ledger.Filled && sources.IsSeries(g.Dataset) {
			return fmt.Sprintf("Nothing: 'lacuna why %s' tells what became of the day.", g.First.UTC().Format(time.DateOnly))
		}
		if _, running := ledger.Holder(o.cfg.State.Ledger()); !running {
			return "Start the daemon, or run 'lacuna once': nobody is at work."
		}
		return "Nothing: the daemon fills it in its turn. If it stays so, 'lacuna status' says what holds it up."
	}
	for _, d := range deliveries {
		if d.State == ledger.Aside {
			return "Mend what keeps " + d.Sink + " from taking it, then 'lacuna publish retry'."
		}
	}
	if slices.ContainsFunc(deliveries, func(d ledger.Delivery) bool { return d.State == ledger.Waiting }) {
		return "Nothing: it is delivered when the sink takes it; 'lacuna publish status' shows the queue."
	}
	if slices.ContainsFunc(reopenings, func(r ledger.Reopening) bool { return r.Outcome == "" }) {
		return "Nothing: it is looked at again when no more neighbours come."
	}
	if g.Absent {
		return "Nothing: if the granule comes, it takes the place of this product; 'lacuna plan' shows what the archive has."
	}
	return fmt.Sprintf("Nothing. To have it made again: 'lacuna redo %s --why REASON'.", name)
}
