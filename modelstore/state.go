package modelstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// States returns the states of versions in words: champion of a dataset, former
// champion (one that a rollback can reach), rolled back, refused, not judged, pinned. Where
// the log is damaged it returns those of the sound part, and a *BadLog beside
// them.
func (s *Store) States() (map[string][]string, error) {
	h, err := s.readHistory()
	if err != nil {
		return nil, err
	}
	states := h.states()
	pins, err := s.Pins()
	for id := range pins {
		states[id] = append(states[id], "pinned")
	}
	if h.bad != nil {
		err = errors.Join(h.bad, err)
	}
	return states, err
}

// states is States without the pins.
func (h *history) states() map[string][]string {
	states := map[string][]string{}
	say := func(id, what string) {
		if !slices.Contains(states[id], what) {
			states[id] = append(states[id], what)
		}
	}
	for dataset, line := range h.lines {
		last := len(line) - 1
		for i, e := range line {
			switch {
			case i == last:
				say(e.Version, "champion of "+dataset)
			case e.Version != line[last].Version:
				say(e.Version, "former champion of "+dataset)
			}
		}
	}
	fallen := map[string]string{} // versions that lost, with the verdict of their last entry
	for _, e := range h.entries {
		switch e.Action {
		case Promoted:
			delete(fallen, e.Version)
		case RolledBack:
			delete(fallen, e.Version)
			fallen[e.Previous] = "rolled back"
		case Refused:
			fallen[e.Version] = "refused"
		case Unjudged:
			fallen[e.Version] = "not judged"
		}
	}
	for id, what := range fallen {
		if len(states[id]) == 0 {
			say(id, what)
		}
	}
	for _, list := range states {
		slices.Sort(list)
	}
	return states
}

// Resolve finds the version that a person means: a whole name, "champion" (of
// the only dataset), the name of a dataset for its champion, or the beginning
// of a name or of its hash if only one version fits.
func (s *Store) Resolve(ref string) (string, error) {
	if validID(ref) {
		_, err := s.Peek(ref)
		return ref, err
	}
	champions, err := s.Champions()
	if err != nil {
		return "", err
	}
	if e, ok := champions[ref]; ok {
		return e.Version, nil
	}
	if ref == "champion" {
		return only(champions)
	}
	versions, _, err := s.List()
	if err != nil {
		return "", err
	}
	var fits []string
	for _, v := range versions {
		if ref != "" && (strings.HasPrefix(v.ID, ref) || strings.HasPrefix(v.ID[len(v.ID)-idDigits:], ref)) {
			fits = append(fits, v.ID)
		}
	}
	switch len(fits) {
	case 0:
		return "", fmt.Errorf("%w: %q fits nothing in %s; 'lacuna models list' shows the versions", ErrNotFound, ref, s.dir)
	case 1:
		return fits[0], nil
	}
	return "", fmt.Errorf("%q fits %d versions: %s", ref, len(fits), strings.Join(fits, ", "))
}

// only returns the champion where there is one dataset.
func only(champions map[string]Entry) (string, error) {
	if len(champions) > 1 {
		return "", fmt.Errorf("%d datasets have a champion; name the dataset", len(champions))
	}
	for _, e := range champions {
		return e.Version, nil
	}
	return "", ErrNoChampion
}
