package retrain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/ingest/products"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/version"
)

// seenBy returns the days that a version and its ancestors learned from or were
// chosen by. A card that is older than such lists does not say which: every day
// up to the end of its data may be one.
func seenBy(card modelstore.Card, parts version.Parts) []modelstore.Seen {
	all := slices.Clone(card.Split.Seen)
	for _, sea := range card.Split.Seas {
		all = append(all, modelstore.Seen{Variable: sea.Variable, Box: &sea.Box, Learn: sea.Learn, Choose: sea.Choose})
	}
	if !card.Split.Known() {
		until := card.Data.To
		if until.IsZero() {
			until = card.Created
		}
		unknown := modelstore.Seen{Variable: card.Variable, Until: until.UTC().Format(time.DateOnly)}
		if len(card.Data.Beside) > 0 {
			unknown.Variable = "" // those may be of any quantity, at any place
		} else if box := parts.Box(); box != nil {
			unknown.Box = (*modelstore.Box)(box)
		}
		all = append(all, unknown)
	}
	return mergeSeen(all)
}

// mergeSeen puts the days of the same variable and place together, in order.
func mergeSeen(all []modelstore.Seen) []modelstore.Seen {
	type key struct {
		variable string
		known    bool
		box      modelstore.Box
	}
	byPlace := map[key]*modelstore.Seen{}
	var out []*modelstore.Seen
	for _, s := range all {
		k := key{variable: s.Variable}
		if s.Box != nil {
			k.known, k.box = true, *s.Box
		}
		if byPlace[k] == nil {
			byPlace[k] = &modelstore.Seen{Variable: s.Variable, Box: s.Box}
			out = append(out, byPlace[k])
		}
		byPlace[k].Learn, byPlace[k].Choose = append(byPlace[k].Learn, s.Learn...), append(byPlace[k].Choose, s.Choose...)
		byPlace[k].Until = max(byPlace[k].Until, s.Until)
	}
	merged := make([]modelstore.Seen, len(out))
	for i, s := range out {
		s.Learn, s.Choose = union(s.Learn), union(s.Choose)
		merged[i] = *s
	}
	slices.SortFunc(merged, func(a, b modelstore.Seen) int {
		return cmp.Or(strings.Compare(a.Variable, b.Variable), strings.Compare(placeName(a.Box), placeName(b.Box)))
	})
	return merged
}

func placeName(b *modelstore.Box) string {
	if b == nil {
		return ""
	}
	return b.String()
}

// seenOf returns the days of a variable among those that were seen.
func seenOf(variable string, all []modelstore.Seen) ([]samples.Seen, error) {
	var out []samples.Seen
	for _, s := range all {
		if !sameQuantity(variable, s.Variable) {
			continue
		}
		seen := samples.Seen{Box: (*samples.Box)(s.Box)}
		var errs [3]error
		seen.Learned, errs[0] = dates(s.Learn)
		seen.Chosen, errs[1] = dates(s.Choose)
		if s.Until != "" {
			errs[2] = seen.Until.UnmarshalText([]byte(s.Until))
		}
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("read the days of the version to begin with: %w", err)
		}
		out = append(out, seen)
	}
	return out, nil
}

func dates(days []string) ([]samples.Date, error) {
	out := make([]samples.Date, len(days))
	for i, day := range days {
		if err := out[i].UnmarshalText([]byte(day)); err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return out, nil
}

// union returns days in order, each once.
func union(days []string) []string {
	slices.Sort(days)
	return slices.Compact(days)
}

// Known returns the calendar of a version for a series, empty where it has none
// of that place, and the days of it on which neither the version nor what is
// compared with it may be judged. A card that is older than lists of days says
// nothing.
func Known(card modelstore.Card, s samples.Series, variable string) (samples.Calendar, []samples.Seen, error) {
	var calendar samples.Calendar
	if !card.Split.Known() {
		return calendar, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(card.Split.Seas)) {
		sea := card.Split.Seas[name]
		if len(calendar.Intervals) > 0 || !samples.Box(sea.Box).Overlaps(samples.BoxOf(s.Grid)) || !sameQuantity(variable, sea.Variable) {
			continue
		}
		if err := json.Unmarshal(sea.Calendar, &calendar); err != nil {
			return calendar, nil, fmt.Errorf("read the calendar of %s: %w", name, err)
		}
		if err := calendar.Validate(); err != nil {
			return calendar, nil, err
		}
	}
	seen, err := seenOf(variable, seenBy(card, nil))
	return calendar, seen, err
}

// sameQuantity reports whether two variables may be of one quantity: it says no
// only of names that are known to be of different ones.
func sameQuantity(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	of, other := quantities(a), quantities(b)
	return len(of) == 0 || len(other) == 0 || slices.ContainsFunc(of, func(name string) bool { return slices.Contains(other, name) })
}

// quantities returns the CF names of the products that have a variable.
func quantities(variable string) []string {
	var names []string
	for _, p := range products.All() {
		if slices.ContainsFunc(append(p.Variables, p.Variable), func(v string) bool { return strings.EqualFold(v, variable) }) {
			names = append(names, p.StandardName)
		}
	}
	return names
}

// splitOf returns the days of a version as its card lists them.
func (t *Training) splitOf(out version.Outcome) (modelstore.Split, error) {
	split := modelstore.Split{Seas: map[string]modelstore.Sea{}, Seen: t.seen}
	for i, days := range out.Days {
		calendar, err := json.Marshal(out.Calendars[i])
		if err != nil {
			return split, fmt.Errorf("write the calendar: %w", err)
		}
		sea := modelstore.Sea{
			Variable: t.req.Data[i].Variable, Box: modelstore.Box(samples.BoxOf(t.req.Data[i].Series.Grid)), Calendar: calendar,
			Learn: texts(days.Learn), Choose: texts(days.Choose), Judge: texts(days.Judge),
		}
		split.Seas[seaName(split.Seas, sea.Box)] = sea
		split.Learn = append(split.Learn, sea.Learn...)
		split.Choose = append(split.Choose, sea.Choose...)
		split.Judge = append(split.Judge, sea.Judge...)
		split.TrainDays, split.CheckDays, split.TestDays = split.TrainDays+len(sea.Learn), split.CheckDays+len(sea.Choose), split.TestDays+len(sea.Judge)
		split.Rule = fmt.Sprintf("by the calendar of the dataset, with at least %d days between learning and judging", out.Calendars[i].GapDays)
	}
	split.Learn, split.Choose, split.Judge = union(split.Learn), union(split.Choose), union(split.Judge)
	for i, days := range out.Beside {
		box := modelstore.Box(samples.BoxOf(t.req.Beside[i].Series.Grid))
		split.Seen = append(split.Seen, modelstore.Seen{Variable: t.req.Beside[i].Variable, Box: &box, Learn: texts(days.Learn)})
	}
	split.Seen = mergeSeen(split.Seen)
	return split, nil
}

// seaName returns a name for a sea that no other has.
func seaName(others map[string]modelstore.Sea, box modelstore.Box) string {
	name := box.String()
	for n := 2; ; n++ {
		if _, taken := others[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%v (%d)", box, n)
	}
}

func texts(dates []samples.Date) []string {
	out := make([]string, len(dates))
	for i, d := range dates {
		out[i] = d.String()
	}
	return out
}
