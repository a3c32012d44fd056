package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"lacuna/fetch"
	"lacuna/internal/faults"
	"lacuna/internal/figure"
	"lacuna/ledger"
)

// Story is the history of a granule in sentences, from its first listing to now.
type Story struct {
	Dataset string      `json:"dataset"`
	Granule string      `json:"granule,omitempty"` // empty: the ledger has no granule of the day
	Days    []string    `json:"days"`              // days of its fields, where it was read
	State   string      `json:"state"`             // state of the newest revision; unknown where there is none
	Lines   []StoryLine `json:"lines"`             // in the order of time
	ToDo    string      `json:"to_do"`             // advice to the operator
}

// StoryLine is one event of a story.
type StoryLine struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // a sentence
	rank int       // order of lines of the same moment
}

// Why returns the story of a granule, or of every granule of a day (2024-05-17).
// dataset may be empty. A day without granules has a story for every dataset,
// with the likely reason.
func (o *Operations) Why(ctx context.Context, what, dataset string) ([]Story, error) {
	day, err := time.Parse(time.DateOnly, what)
	if err != nil {
		found, err := o.named(ctx, dataset, what)
		if err != nil {
			return nil, err
		}
		return o.stories(ctx, found)
	}
	var all []Story
	for _, set := range o.cfg.Datasets {
		if dataset != "" && set.Name != dataset {
			continue
		}
		found, err := o.selected(ctx, Selection{Dataset: set.Name, Days: []fetch.Days{{From: day, To: day}}})
		var stories []Story
		switch {
		case err != nil && len(found) == 0:
			var s Story
			s, err = o.absence(ctx, set, day)
			stories = []Story{s}
		default:
			stories, err = o.stories(ctx, found)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, stories...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: there is no dataset %q", faults.ErrConfig, dataset)
	}
	return all, nil
}

func (o *Operations) stories(ctx context.Context, names []ledger.Object) ([]Story, error) {
	var all []Story
	for _, n := range names {
		s, err := o.Story(ctx, n.Dataset, n.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Story returns the story of one granule.
func (o *Operations) Story(ctx context.Context, dataset, name string) (Story, error) {
	s := Story{Dataset: dataset, Granule: name, Days: []string{}}
	rows, err := o.book.Granules(ctx, ledger.GranuleQuery{Dataset: dataset, Name: name})
	if err != nil {
		return s, err
	}
	slices.Reverse(rows)
	for i, g := range rows {
		events, err := o.book.History(ctx, g.ID)
		if err != nil {
			return s, err
		}
		came := i > 0 && rows[i-1].Absent && !g.Absent
		s.Lines = append(s.Lines, revisionLines(g, events, came)...)
		s.noteDays(g)
	}
	deliveries, err := o.book.Deliveries(ctx, dataset, name)
	if err != nil {
		return s, err
	}
	reopenings, err := o.book.Reopenings(ctx, ledger.ReopeningQuery{Dataset: dataset, Granule: name})
	if err != nil {
		return s, err
	}
	scores, err := o.scores(ctx, dataset, name, rows)
	if err != nil {
		return s, err
	}
	s.Lines = append(s.Lines, slices.Concat(deliveryLines(deliveries), reopeningLines(reopenings), scores)...)
	slices.SortStableFunc(s.Lines, func(a, b StoryLine) int { return cmp.Or(a.At.Compare(b.At), a.rank-b.rank) })
	newest := rows[len(rows)-1]
	s.State, s.ToDo = string(newest.State), o.toDo(newest, deliveries, reopenings)
	return s, nil
}

func (s *Story) noteDays(g ledger.Granule) {
	for _, t := range []time.Time{g.First, g.Last} {
		if day := t.UTC().Format(time.DateOnly); !t.IsZero() && !slices.Contains(s.Days, day) {
			s.Days = append(s.Days, day)
		}
	}
}

// scores returns the scores of a granule in words.
func (o *Operations) scores(ctx context.Context, dataset, name string, rows []ledger.Granule) ([]StoryLine, error) {
	var lines []StoryLine
	newest := rows[len(rows)-1]
	if newest.First.IsZero() {
		return nil, nil
	}
	const around = 24 * time.Hour
	all, err := o.book.Skills(ctx, ledger.SkillQuery{Dataset: dataset, From: newest.First.Add(-around), To: newest.Last.Add(around)})
	for _, s := range all {
		if s.Granule == name {
			lines = append(lines, StoryLine{At: s.At, Text: fmt.Sprintf(
				"Scored on %d pixels (%s): mean squared error %.3f of the variance, %.0f %% inside the 90 %% interval.",
				s.Pixels, s.Kind, s.MSE, 100*s.Covered90)})
		}
	}
	return lines, err
}

// absence returns the story of a day without granules.
func (o *Operations) absence(ctx context.Context, set Dataset, day time.Time) (Story, error) {
	s := Story{Dataset: set.Name, Days: []string{day.Format(time.DateOnly)}, State: "unknown", Lines: []StoryLine{}}
	last, err := o.book.LastPoll(ctx, set.Name)
	if err != nil {
		return s, err
	}
	newest, known, err := o.book.Newest(ctx, set.Name)
	if err != nil {
		return s, err
	}
	if !last.IsZero() {
		s.Lines = append(s.Lines, StoryLine{At: last, Text: "The archive was seen whole, and nothing of this day was fetched from it."})
	}
	if known {
		s.Lines = append(s.Lines, StoryLine{At: newest.Changed, Text: "The newest field that was read is of " + clock(newest.Last) + "."})
	}
	back := set.Archive.Lookback
	switch {
	case day.After(o.now()):
		s.ToDo = "Wait: the day has yet to come."
	case known && day.After(newest.Last):
		s.ToDo = fmt.Sprintf("'lacuna plan --dataset %s' shows whether the archive has it; where it has not, wait or ask the producer.", set.Name)
	case back > 0 && o.now().Sub(day) > back:
		s.ToDo = fmt.Sprintf("The day is older than the look-back of %s: 'lacuna backfill --dataset %s --from %s --to %s' fetches it.",
			figure.Duration(back), set.Name, day.Format(time.DateOnly), day.Format(time.DateOnly))
	case set.SkipsEmptyDays:
		s.ToDo = fmt.Sprintf("empty_days is skip, so a day without a granule has no product; 'lacuna plan --dataset %s' shows whether the archive has one.", set.Name)
	default:
		s.ToDo = fmt.Sprintf("'lacuna plan --dataset %s' shows whether the archive has it; 'lacuna check --online' whether the archive can be reached.", set.Name)
	}
	return s, nil
}
