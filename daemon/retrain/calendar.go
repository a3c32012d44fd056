package retrain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lacuna/modelstore"
	"lacuna/pipeline/samples"
)

// calendars is the content of the calendar of a dataset in the store.
type calendars struct {
	Seas []seaCalendar `json:"seas"`
}

// seaCalendar is the calendar of one place of a dataset.
type seaCalendar struct {
	Box      samples.Box      `json:"box"`
	Calendar samples.Calendar `json:"calendar"`
}

// errOtherCalendar says that the days of a dataset were assigned by another
// training meanwhile.
var errOtherCalendar = errors.New("another training has assigned the days of this dataset in the meantime; the same command begins again with that assignment")

// assign gives each series its calendar, extended to its days: that of the place
// that it overlaps, or a new one. Series of one place share a calendar, or a day
// of the one would be judged on and of the other learned from.
func (c *calendars) assign(series []samples.Series, cfg samples.SplitConfig) []samples.Calendar {
	of := make([]int, len(series))
	days := map[int][]samples.Day{}
	for i, s := range series {
		box := samples.BoxOf(s.Grid)
		of[i] = slices.IndexFunc(c.Seas, func(sea seaCalendar) bool { return sea.Box.Overlaps(box) })
		if of[i] < 0 {
			of[i] = len(c.Seas)
			c.Seas = append(c.Seas, seaCalendar{Box: box})
		}
		days[of[i]] = append(days[of[i]], s.Days...)
	}
	out := make([]samples.Calendar, len(series))
	for i, sea := range of {
		all := days[sea]
		slices.SortFunc(all, func(a, b samples.Day) int { return a.Time.Compare(b.Time) })
		c.Seas[sea].Calendar = samples.Extend(c.Seas[sea].Calendar, all, cfg)
		out[i] = c.Seas[sea].Calendar
	}
	return out
}

// calendars returns those of the dataset from the content of the store, else from
// the card of the champion or the parent.
func (t *Training) calendars(stored []byte) (calendars, error) {
	return knownCalendars(t.req.Dataset, stored, t.championCard, t.parentCard)
}

// knownCalendars returns the calendars of a dataset from the content of the store.
// Where it has none, they are those that came with a version on its card from
// another store.
func knownCalendars(dataset string, stored []byte, cards ...modelstore.Card) (calendars, error) {
	var c calendars
	if stored != nil {
		if err := json.Unmarshal(stored, &c); err != nil {
			return c, fmt.Errorf("read the calendar of %s: %w", dataset, err)
		}
	}
	for _, card := range cards {
		if len(c.Seas) > 0 || card.Dataset != dataset {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(card.Split.Seas)) {
			sea := card.Split.Seas[name]
			known := seaCalendar{Box: samples.Box(sea.Box)}
			if err := json.Unmarshal(sea.Calendar, &known.Calendar); err != nil {
				return c, fmt.Errorf("read the calendar of %s on the card of a version: %w", name, err)
			}
			c.Seas = append(c.Seas, known)
		}
	}
	for _, sea := range c.Seas {
		if err := sea.Calendar.Validate(); err != nil {
			return c, fmt.Errorf("dataset %s: %w; restore it from a backup", dataset, err)
		}
	}
	return c, nil
}

// assignDays finds the calendars of the series. It writes nothing.
func (t *Training) assignDays(cfg samples.SplitConfig) ([]samples.Calendar, error) {
	stored, err := t.store.Calendar(t.req.Dataset)
	if err != nil {
		return nil, err
	}
	known, err := t.calendars(stored)
	if err != nil {
		return nil, err
	}
	return known.assign(seriesOf(t.req.Data), cfg), nil
}

// keepCalendar writes the calendars before anything is learned: from then on
// every training of the dataset uses them.
func (t *Training) keepCalendar(ctx context.Context) error {
	return t.store.ChangeCalendar(ctx, t.req.Dataset, func(stored []byte) ([]byte, error) {
		c, err := t.calendars(stored)
		if err != nil {
			return nil, err
		}
		for i, now := range c.assign(t.job.Series, t.job.Settings.Split) {
			if !now.Extends(t.job.Calendars[i]) && !t.job.Calendars[i].Extends(now) {
				return nil, errOtherCalendar
			}
		}
		data, err := json.MarshalIndent(c, "", " ")
		return append(data, '\n'), err
	})
}
