package prior

import (
	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// Days know the mask of the day before one of theirs, as both sides of a split
// do.
type Days interface {
	Days() int
	Cut(r samples.Ref) samples.Patch
	Yesterday(r samples.Ref) []bool
}

// Recall lets a prior with Yesterday in its config look up, for every patch of
// days that it meets from now on, the mask of the day before. Patches of
// other days, and those whose day before is not there, go without, which the
// network has learned too. It is for the time before the model is shared.
func (m *Model) Recall(days Days) { m.days = days }

// Place returns the place of a patch, with yesterday's mask where the network
// looks at it and it is known.
func (m *Model) Place(p samples.Patch) Place {
	place := PlaceOf(p)
	if !m.cfg.Yesterday || m.days == nil || p.Day < 0 || p.Day >= m.days.Days() {
		return place
	}
	if own := m.days.Cut(p.Ref); own.Place == p.Place && own.Time.Equal(p.Time) {
		place = place.After(m.days.Yesterday(p.Ref))
	}
	return place
}

// After returns the place with the mask of the day before. An empty one counts
// as not known: whether that day is missing or was all cloud cannot be told
// apart.
func (p Place) After(yesterday []bool) Place {
	p.Yesterday = nil
	if field.Mask(yesterday).Count() > 0 {
		p.Yesterday = yesterday
	}
	return p
}
