package retrain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"lacuna/daemon/state"
)

// shadowVersion is a version that won at the gate and is tested on days that it
// has not seen, while the champion is published.
type shadowVersion struct {
	Version string    `json:"version"`
	Since   time.Time `json:"since"` // the day after its newest training day
}

// shadowPast is the number of days before the shadow days that are read too:
// the window of the first new days, and the data that checks the scale.
const shadowPast = 60

// inShadow reports whether a version is in its shadow days. Nothing else is
// trained until they are over: it is not known yet which of the two a further
// challenger would have to beat.
func (s *Scheduler) inShadow(ctx context.Context) (bool, error) {
	var v shadowVersion
	known, err := state.Load(s.path(shadowFile), &v)
	if err != nil || !known {
		return false, err
	}
	serving, err := s.champion()
	if err != nil {
		return true, err
	}
	if serving == v.Version { // somebody has promoted it by hand, and there is nothing left to find out
		promoted := Event{State: StatePromoted, Reasons: []string{"promoted by hand in its shadow days"}}
		return false, errors.Join(s.remember(promoted), state.Remove(s.path(shadowFile)))
	}
	rows, err := s.Ledger.Granules(ctx, v.Since.AddDate(0, 0, -shadowPast), s.Now().AddDate(1, 0, 0))
	if err != nil {
		return true, err
	}
	data, days := daysSince(rows, v.Since)
	if days < s.Config.ShadowDays {
		s.stand(Standing{State: StandShadow, Words: fmt.Sprintf("version %s is in its shadow days: %d of %d", v.Version, days, s.Config.ShadowDays)})
		return true, nil
	}
	s.stand(Standing{State: StandShadow, Words: fmt.Sprintf("version %s is compared with the champion on its %d shadow days", v.Version, days)})
	beside, err := s.covariates(ctx, v.Since.AddDate(0, 0, -shadowPast), s.Now())
	if err != nil {
		return true, err
	}
	argv := slices.Concat(s.Program, []string{
		"shadow", "--store", s.Config.Store, "--dataset", s.Dataset.Name, "--engine", s.Config.Engine,
		"--version", v.Version, "--since", v.Since.UTC().Format(time.RFC3339),
	}, s.reading(data), beside)
	last, err := s.child.Run(ctx, argv, os.Stderr, nil)
	if err != nil {
		return true, fmt.Errorf("shadow days of %s: %w", v.Version, err) // tried again at the next check
	}
	s.Log.Info("shadow days ended", "version", v.Version, "state", last.State)
	return true, errors.Join(s.remember(last), os.Remove(s.path(shadowFile)))
}

// daysSince returns the files that are still in the spool, and the number of
// days since a time that have some.
func daysSince(rows []Granule, since time.Time) (data []string, days int) {
	seen := map[string]bool{}
	for _, g := range rows {
		if _, err := os.Stat(g.Path); err != nil {
			continue // swept from the spool
		}
		data = append(data, g.Path)
		for _, t := range g.Times {
			if !t.Before(since) {
				seen[t.UTC().Format(time.DateOnly)] = true
			}
		}
	}
	return data, len(seen)
}

// remember changes the record of the last training.
func (s *Scheduler) remember(last Event) error {
	var m LastTraining
	if _, err := state.Load(s.path(lastFile), &m); err != nil {
		return err
	}
	m.Refusals = refusals(m, last)
	m.State, m.Reasons = last.State, last.Reasons
	return state.Save(s.path(lastFile), m)
}

// beginShadow notes that a version is to be shadowed from the day after the
// newest granule on.
func (s *Scheduler) beginShadow(ctx context.Context, version string) error {
	rows, err := s.Ledger.Granules(ctx, time.Time{}, s.Now().AddDate(1, 0, 0))
	if err != nil {
		return err
	}
	v := shadowVersion{Version: version}
	for _, g := range rows {
		for _, t := range g.Times {
			if after := t.Add(time.Second); after.After(v.Since) {
				v.Since = after
			}
		}
	}
	return state.Save(s.path(shadowFile), v)
}
