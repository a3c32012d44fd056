package operate

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/ledger"
)

// Selection names granules in the ways in which an operator does: by days, by
// ranges of days, and by names. The zero Selection names none.
type Selection struct {
	Dataset string // empty: every dataset
	Days    []fetch.Days
	Names   []string // of granules, or the ends of their paths
}

var looksLikeDay = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$`)

// Select reads what an operator typed: each argument is a day like 2024-04-09, a
// range like 2024-04-01..2024-04-30 with either end left out where it is open, or
// the name of a granule; from and to are the ends of one more range.
func Select(dataset string, args []string, from, to string) (Selection, error) {
	s := Selection{Dataset: dataset}
	for _, arg := range args {
		first, last, _ := strings.Cut(arg, "..")
		switch {
		case arg == "" || arg == "..":
			return s, fmt.Errorf("%q is neither a day, a range like 2024-04-01..2024-04-30 nor the name of a granule", arg)
		case !looksLikeDay.MatchString(first) && !looksLikeDay.MatchString(last):
			s.Names = append(s.Names, arg)
		default:
			if err := s.addDays(arg); err != nil {
				return s, err
			}
		}
	}
	if from == "" && to == "" {
		return s, nil
	}
	return s, s.addDays(from + ".." + to)
}

func (s *Selection) addDays(text string) error {
	var days fetch.Days
	if err := days.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("%q: a day is like 2024-04-09, a range like 2024-04-01..2024-04-30", text)
	}
	if !days.To.IsZero() && days.To.Before(days.From) {
		return fmt.Errorf("%s: the last day of a range is not before the first", text)
	}
	s.Days = append(s.Days, days)
	return nil
}

// IsZero reports whether no granule is named.
func (s Selection) IsZero() bool { return len(s.Days)+len(s.Names) == 0 }

// String returns the selection as it may be typed.
func (s Selection) String() string {
	words := slices.Clone(s.Names)
	for _, d := range s.Days {
		if d.From.Equal(d.To) {
			words = append(words, d.From.Format(time.DateOnly))
		} else {
			words = append(words, d.String())
		}
	}
	return strings.Join(words, " ")
}

// spanOf returns the times of the fields of some days; open ends are far away.
func spanOf(d fetch.Days) (from, to time.Time) {
	to = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if !d.To.IsZero() {
		to = d.To
	}
	return d.From, to
}

// selected returns the granules of a selection, each once. A name or a range of
// which nothing is known is an error.
func (o *Operations) selected(ctx context.Context, s Selection) ([]ledger.Object, error) {
	var all []ledger.Object
	add := func(one ledger.Object) {
		if !slices.ContainsFunc(all, func(o ledger.Object) bool { return o.Dataset == one.Dataset && o.Name == one.Name }) {
			all = append(all, one)
		}
	}
	for _, name := range s.Names {
		found, err := o.named(ctx, s.Dataset, name)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			add(one)
		}
	}
	for _, days := range s.Days {
		from, to := spanOf(days)
		rows, err := o.ofRange(ctx, s.Dataset, from, to)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return nil, fmt.Errorf("%s: %w", Selection{Days: []fetch.Days{days}}, ErrUnknown)
		}
		for _, g := range rows {
			add(ledger.Object{Dataset: g.Dataset, Name: g.Name})
		}
	}
	return all, nil
}
