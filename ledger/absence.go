package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// NoContent stands for the hash of a granule that does not exist.
const NoContent = "none"

// Absence is a time of a series of which the archive has no granule.
type Absence struct {
	Dataset string
	Name    string      // name that the granule would have
	Times   []time.Time // times that its fields would have
	Lane    Lane
}

// AddAbsence records an absence as a granule in state Fetched, in one
// transaction, so that its product is made like any other; added is false where
// the name is known already. A granule that comes under the name later is the
// next revision.
func (l *Ledger) AddAbsence(ctx context.Context, a Absence, now time.Time) (added bool, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		added, err = addAbsence(ctx, tx, a, now)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("record that there is no granule %s: %w", a.Name, err)
	}
	return added, nil
}

func addAbsence(ctx context.Context, tx *sql.Tx, a Absence, now time.Time) (bool, error) {
	if a.Name == "" || len(a.Times) == 0 {
		return false, errors.New("name or times are empty")
	}
	_, known, err := newest(ctx, tx, a.Dataset, a.Name)
	if err != nil || known {
		return false, err
	}
	g := Granule{Arrival: Arrival{Object: Object{Dataset: a.Dataset, Name: a.Name}, SHA256: NoContent, Lane: a.Lane}, Absent: true}
	if g, err = insertNext(ctx, tx, g, now); err != nil {
		return false, err
	}
	if err := setTimes(ctx, tx, g.ID, a.Times); err != nil {
		return false, err
	}
	_, err = step(ctx, tx, g, move{to: Fetched, at: now})
	return err == nil, err
}

// Start is the first field of a granule, or of the absence of one.
type Start struct {
	Time     time.Time
	Name     string // of the granule
	Absent   bool
	Recorded time.Time // when it became known, in its first revision
	Lane     Lane      // likewise
}

// Starts returns the starts of a dataset from a time on, in the order of times,
// without those of granules that were set aside. A granule whose revisions agree
// on its time has one.
func (l *Ledger) Starts(ctx context.Context, dataset string, from time.Time) ([]Start, error) {
	rows, err := query(ctx, l.db, func(row scanner) (s Start, err error) {
		return s, row.Scan((*moment)(&s.Time), &s.Name, &s.Absent, (*moment)(&s.Recorded), &s.Lane)
	}, `SELECT f.time, g.name, g.absent, g.recorded, g.lane FROM field_time AS f CROSS JOIN granule AS g ON g.id = f.granule
		WHERE f.dataset = ? AND f.time >= ? AND g.first_time = f.time AND g.state <> 'quarantined' ORDER BY f.time, g.name, g.revision`,
		dataset, text(from))
	if err != nil {
		return nil, fmt.Errorf("list times of %s: %w", dataset, err)
	}
	var all []Start
	for _, s := range rows {
		if n := len(all); n > 0 && all[n-1].Name == s.Name && all[n-1].Time.Equal(s.Time) {
			if all[n-1].Absent && !s.Absent { // it has come
				all[n-1] = s
			}
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

// longestSlot is half of the longest step of a series: a month.
const longestSlot = 16 * 24 * time.Hour

// retireAbsences ends the absences for which a granule has come under another
// name: their products are retracted, and those that have none yet get none. A
// granule has come for an absence where it is nearer to it than half the way to
// any other.
func retireAbsences(ctx context.Context, tx *sql.Tx, g Granule, sinks []string, now time.Time) error {
	if g.Absent {
		return nil
	}
	why := fmt.Sprintf("it stood for a granule that was missing and has come as %s", g.Name)
	times, err := timesOf(ctx, tx, "granule = ?", g.ID)
	if err != nil {
		return err
	}
	for _, t := range times {
		near, err := query(ctx, tx, scanGranule, "SELECT "+granuleColumns+` FROM granule WHERE absent = 1 AND name <> ? AND state <> 'quarantined'
			AND id IN (SELECT granule FROM field_time WHERE dataset = ? AND time BETWEEN ? AND ?)
			AND NOT EXISTS (SELECT 1 FROM granule AS came WHERE came.dataset = granule.dataset AND came.name = granule.name
				AND came.absent = 0 AND came.state <> 'quarantined')`,
			g.Name, g.Dataset, text(t.Add(-longestSlot)), text(t.Add(longestSlot)))
		if err != nil {
			return err
		}
		for _, a := range near {
			slot, err := slotOf(ctx, tx, a, g.Name)
			if err != nil {
				return err
			}
			if a.First.Sub(t).Abs() >= slot {
				continue
			}
			if err := retireAbsence(ctx, tx, a, why, sinks, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// slotOf returns half the time from an absence to the nearest start of another
// granule, or absence, than the named one; 0 where there is none.
func slotOf(ctx context.Context, tx *sql.Tx, a Granule, but string) (slot time.Duration, err error) {
	for _, where := range []string{"f.time < ? ORDER BY f.time DESC", "f.time > ? ORDER BY f.time"} {
		next, err := query(ctx, tx, func(row scanner) (t time.Time, err error) { return t, row.Scan((*moment)(&t)) },
			`SELECT f.time FROM field_time AS f CROSS JOIN granule AS g ON g.id = f.granule
			WHERE f.dataset = ? AND g.name <> ? AND g.name <> ? AND g.state <> 'quarantined' AND `+where+" LIMIT 1",
			a.Dataset, a.Name, but, text(a.First))
		if err != nil {
			return 0, err
		}
		for _, t := range next {
			if half := a.First.Sub(t).Abs() / 2; slot == 0 || half < slot {
				slot = half
			}
		}
	}
	return slot, nil
}

// retireAbsence ends one revision of an absence.
func retireAbsence(ctx context.Context, tx *sql.Tx, a Granule, why string, sinks []string, now time.Time) error {
	if a.State == Fetched || a.State == Filled {
		_, err := step(ctx, tx, a, move{to: Quarantined, reason: why, at: now})
		return err
	}
	products, err := query(ctx, tx, scanPublication, "SELECT "+publicationColumns+" FROM publication AS p WHERE granule = ? AND retracted = ''", a.ID)
	if err != nil {
		return err
	}
	for _, p := range products {
		p.Why = why
		if err := retract(ctx, tx, p, sinks, now); err != nil {
			return err
		}
	}
	return closeReopening(ctx, tx, Reopening{Dataset: a.Dataset, Granule: a.Name, Outcome: Overtaken}, now)
}

// Unseen counts products without an observation.
type Unseen struct {
	CloudedOut int // their granules hold no observation
	NoGranule  int // the archive has no granule
}

// EverSeen reports whether a product of a dataset has an observation.
func (l *Ledger) EverSeen(ctx context.Context, dataset string) (seen bool, err error) {
	err = l.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM granule WHERE dataset = ? AND observed > 0)", dataset).Scan(&seen)
	if err != nil {
		return false, fmt.Errorf("look for an observation of %s: %w", dataset, err)
	}
	return seen, nil
}

// Unseen counts the current products of a dataset without an observation, from a
// time on.
func (l *Ledger) Unseen(ctx context.Context, dataset string, from time.Time) (n Unseen, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT coalesce(sum(absent = 0), 0), coalesce(sum(absent = 1), 0) FROM granule AS g
		WHERE dataset = ? AND first_time >= ? AND product_path <> '' AND observed = 0
		AND NOT EXISTS (SELECT 1 FROM granule AS later WHERE later.dataset = g.dataset AND later.name = g.name
			AND later.revision > g.revision AND later.product_path <> '')
		AND NOT EXISTS (SELECT 1 FROM publication AS p WHERE p.granule = g.id AND p.retracted <> '')`,
		dataset, text(from)).Scan(&n.CloudedOut, &n.NoGranule)
	if err != nil {
		return Unseen{}, fmt.Errorf("count products of %s without an observation: %w", dataset, err)
	}
	return n, nil
}
