package modelstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Errors that callers branch on.
var (
	// ErrNoChampion says that no version was ever promoted for a dataset, or
	// that there is none left to roll back to.
	ErrNoChampion = errors.New("no champion")
	// ErrChampionChanged says that a promotion was decided against a former
	// champion.
	ErrChampionChanged = errors.New("the champion changed")
)

// Change is the promotion or refusal of a version.
type Change struct {
	Dataset string // empty: that of the version's card
	Version string
	By      string   // person or program
	Why     []string // one sentence each
}

// Promote makes a version champion, whatever is champion now. The version is
// checked first: one that does not load is not promoted. If it is champion
// already, the entry that made it so is returned and nothing is written.
func (s *Store) Promote(ctx context.Context, c Change) (Entry, error) {
	return s.promote(ctx, c, func(Entry) error { return nil })
}

// PromoteOver is Promote for a decision that was made by comparing with a
// champion (empty: with none). If another process changed the champion since,
// the error is ErrChampionChanged and nothing is written.
func (s *Store) PromoteOver(ctx context.Context, champion string, c Change) (Entry, error) {
	return s.promote(ctx, c, func(now Entry) error {
		if now.Version == champion {
			return nil
		}
		return fmt.Errorf("%w: it is %s by now, the comparison was with %s", ErrChampionChanged, orNone(now.Version), orNone(champion))
	})
}

func (s *Store) promote(ctx context.Context, c Change, allowed func(now Entry) error) (Entry, error) {
	entry := func(h *history, e Entry) (Entry, error) {
		now, _ := h.champion(e.Dataset)
		if now.Version == e.Version {
			return now, nil
		}
		if err := allowed(now); err != nil {
			return Entry{}, err
		}
		e.Action, e.Previous = Promoted, now.Version
		return s.appendEntry(h, e)
	}
	e, err := s.change(ctx, c, entry)
	if err != nil {
		return Entry{}, fmt.Errorf("promote %s: %w", c.Version, err)
	}
	return e, nil
}

// Refuse records that a version was judged, and why it did not become champion.
// The version stays in the store until GC finds it old.
func (s *Store) Refuse(ctx context.Context, c Change) (Entry, error) {
	return s.passOver(ctx, Refused, c)
}

// LeaveUnjudged records that a version could not be judged, and why. It stays in
// the store as a refused one does.
func (s *Store) LeaveUnjudged(ctx context.Context, c Change) (Entry, error) {
	return s.passOver(ctx, Unjudged, c)
}

// passOver records that a version did not become champion.
func (s *Store) passOver(ctx context.Context, action Action, c Change) (Entry, error) {
	if len(c.Why) == 0 {
		return Entry{}, fmt.Errorf("refuse %s: no reason is given; say why", c.Version)
	}
	e, err := s.change(ctx, c, func(h *history, e Entry) (Entry, error) {
		now, _ := h.champion(e.Dataset)
		if now.Version == e.Version {
			return Entry{}, errors.New("it is champion; roll back instead")
		}
		e.Action, e.Previous = action, now.Version
		return s.appendEntry(h, e)
	})
	if err != nil {
		return Entry{}, fmt.Errorf("refuse %s: %w", c.Version, err)
	}
	return e, nil
}

// change checks the version and calls write under the lock. The version is
// checked before, because that may take long, and looked for again within, so
// that no garbage collection comes between.
func (s *Store) change(ctx context.Context, c Change, write func(*history, Entry) (Entry, error)) (Entry, error) {
	v, err := s.Load(c.Version)
	if err != nil {
		return Entry{}, err
	}
	if c.Dataset == "" {
		c.Dataset = v.Card.Dataset
	}
	if !plainName(c.Dataset) {
		return Entry{}, fmt.Errorf("%q is not the name of a dataset", c.Dataset)
	}
	card, err := s.cardSum(c.Version)
	if err != nil {
		return Entry{}, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Entry{}, err
	}
	defer unlock()
	if _, err := s.Peek(c.Version); err != nil {
		return Entry{}, err
	}
	h, err := s.readHistory()
	if err != nil {
		return Entry{}, err
	}
	return write(h, Entry{Dataset: c.Dataset, Version: c.Version, CardSHA256: card, By: c.By, Why: c.Why})
}

// Rollback makes the champion before the present one champion again, or the one
// before that if it does not load. Rolling back twice goes back two steps. The
// *BadVersion errors of skipped versions are returned beside the entry.
func (s *Store) Rollback(ctx context.Context, dataset, by, why string) (e Entry, passed []error, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Entry{}, nil, fmt.Errorf("roll back %s: %w", dataset, err)
	}
	defer unlock()
	h, err := s.readHistory()
	if err != nil {
		return Entry{}, nil, fmt.Errorf("roll back %s: %w", dataset, err)
	}
	now, ok := h.champion(dataset)
	if !ok {
		return Entry{}, nil, fmt.Errorf("roll back %s: %w", dataset, ErrNoChampion)
	}
	for _, former := range backwards(h.lines[dataset])[1:] {
		if former.Version == now.Version {
			continue
		}
		if _, err := s.loadAs(former); err != nil {
			passed = append(passed, err)
			continue
		}
		e, err = s.appendEntry(h, Entry{
			Action: RolledBack, Dataset: dataset, Version: former.Version, CardSHA256: former.CardSHA256,
			Previous: now.Version, By: by, Why: []string{why},
		})
		if err != nil {
			return Entry{}, passed, fmt.Errorf("roll back %s: %w", dataset, err)
		}
		return e, passed, nil
	}
	return Entry{}, passed, fmt.Errorf("roll back %s: %w before %s", dataset, ErrNoChampion, now.Version)
}

// Champions returns, by dataset, the entries by which the present champions
// became it. Where the log is damaged it returns those of the sound part and a
// *BadLog.
func (s *Store) Champions() (map[string]Entry, error) {
	h, err := s.readHistory()
	if err != nil {
		return nil, err
	}
	champions := map[string]Entry{}
	for dataset := range h.lines {
		if e, ok := h.champion(dataset); ok {
			champions[dataset] = e
		}
	}
	if h.bad != nil {
		return champions, h.bad
	}
	return champions, nil
}

// Champion returns the entry by which the champion of a dataset became it.
func (s *Store) Champion(dataset string) (Entry, error) {
	champions, err := s.Champions()
	if err != nil {
		return Entry{}, err
	}
	e, ok := champions[dataset]
	if !ok {
		return Entry{}, fmt.Errorf("dataset %s: %w", dataset, ErrNoChampion)
	}
	return e, nil
}

// Log returns every entry of the log, oldest first; where the log is damaged,
// those before the damage and a *BadLog.
func (s *Store) Log() ([]Entry, error) {
	h, err := s.readHistory()
	if err != nil {
		return nil, err
	}
	if h.bad != nil {
		return h.entries, h.bad
	}
	return h.entries, nil
}

func backwards(entries []Entry) []Entry {
	entries = slices.Clone(entries)
	slices.Reverse(entries)
	return entries
}

func orNone(version string) string {
	if version == "" {
		return "none"
	}
	return version
}
