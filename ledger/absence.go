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
	Recorded time.Time // when the first revision of it became known
	Lane     Lane
}

// Starts returns the starts of a dataset in the order of times, those of
// granules that were set aside left out. A granule whose revisions agree on its
// time has one.
func (l *Ledger) Starts(ctx context.Context, dataset string) ([]Start, error) {
	all, err := query(ctx, l.db, func(row scanner) (s Start, err error) {
		return s, row.Scan((*moment)(&s.Time), &s.Name, &s.Absent, (*moment)(&s.Recorded), &s.Lane)
	}, `SELECT f.time, g.name, min(g.absent), min(g.recorded), max(g.lane) FROM field_time AS f CROSS JOIN granule AS g ON g.id = f.granule
		WHERE f.dataset = ? AND g.first_time = f.time AND g.state <> 'quarantined' GROUP BY f.time, g.name ORDER BY f.time, g.name`, dataset)
	if err != nil {
		return nil, fmt.Errorf("list times of %s: %w", dataset, err)
	}
	return all, nil
}

// retireAbsences retracts the products that stood for a granule which has come
// under another name, at a time less than slot from theirs.
func retireAbsences(ctx context.Context, tx *sql.Tx, g Granule, o Outgoing, now time.Time) error {
	if g.Absent || o.Slot <= 0 {
		return nil
	}
	times, err := timesOf(ctx, tx, "granule = ?", g.ID)
	if err != nil {
		return err
	}
	for _, t := range times {
		stood, err := query(ctx, tx, scanPublication, "SELECT "+publicationColumns+` FROM publication AS p WHERE p.retracted = '' AND p.granule IN (
			SELECT f.granule FROM field_time AS f JOIN granule AS a ON a.id = f.granule
			WHERE f.dataset = ? AND f.time > ? AND f.time < ? AND a.absent = 1 AND a.name <> ?)`,
			g.Dataset, text(t.Add(-o.Slot)), text(t.Add(o.Slot)), g.Name)
		if err != nil {
			return err
		}
		for _, p := range stood {
			p.Why = fmt.Sprintf("it stood for a granule that was missing and has come as %s", g.Name)
			if err := retract(ctx, tx, p, o.Sinks, now); err != nil {
				return err
			}
			if err := closeReopening(ctx, tx, Reopening{Dataset: p.Dataset, Granule: p.Granule, Outcome: Overtaken}, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unseen counts the products of a dataset without an observation.
type Unseen struct {
	CloudedOut int // their granules hold no observation
	NoGranule  int // the archive has no granule
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
