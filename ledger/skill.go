package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// SkillKind is the source of the truth of a score.
type SkillKind string

// The kinds of scores.
const (
	Overlay  SkillKind = "overlay"  // the gaps of another day were laid over the granule
	Revealed SkillKind = "revealed" // the archive replaced the granule by one that shows more
)

// Skill is the score of a filled granule, on cells whose truth the method did
// not see.
type Skill struct {
	Dataset   string
	Granule   string
	Revision  int       // revision whose observations are the truth
	Day       time.Time // day of its first field
	Kind      SkillKind
	Method    string  // method, or version of the model
	MSE, Bias float64 // in standard deviations of the field
	Covered90 float64 // share of the truths inside the 90 % interval
	Pixels    int     // scored cells
	At        time.Time
}

// DueSkill is a granule that is to be scored.
type DueSkill struct {
	ID      int64
	Kind    SkillKind
	Granule Granule
	Scored  Publication // with Revealed: the publication before; else zero
}

// queueSkills makes the scores of a granule due whose product has just been
// stored. Only new bytes are scored: others were before, and an absence has none.
func queueSkills(ctx context.Context, tx *sql.Tx, g Granule, now time.Time) error {
	if g.Cause != FromArchive || g.Absent {
		return nil
	}
	const add = "INSERT OR IGNORE INTO skill (granule, kind, dataset, day, scored, at) VALUES (?, ?, ?, ?, ?, ?)"
	if _, err := tx.ExecContext(ctx, add, g.ID, Overlay, g.Dataset, text(g.First), nil, text(now)); err != nil {
		return err
	}
	var before int64
	err := tx.QueryRowContext(ctx, `SELECT id FROM publication WHERE dataset = ? AND name = ? AND revision < ? AND retracted = ''
		ORDER BY revision DESC LIMIT 1`, g.Dataset, g.Name, g.Revision).Scan(&before)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, add, g.ID, Revealed, g.Dataset, text(g.First), before, text(now))
	}
	return err
}

// NextSkill returns the granule of a dataset that is to be scored next, in the order in
// which granules are filled and not that in which products were stored: a score has a
// part in the next, and workers finish in any order. ok is false where none is due.
func (l *Ledger) NextSkill(ctx context.Context, dataset string) (d DueSkill, ok bool, err error) {
	var granule int64
	var scored sql.NullInt64
	err = l.db.QueryRowContext(ctx, `SELECT s.id, s.kind, s.granule, s.scored FROM skill AS s JOIN granule AS g ON g.id = s.granule
		WHERE s.dataset = ? AND s.state = 'due' ORDER BY g.lane DESC, g.name, g.revision, s.id LIMIT 1`, dataset).
		Scan(&d.ID, &d.Kind, &granule, &scored)
	if errors.Is(err, sql.ErrNoRows) {
		return DueSkill{}, false, nil
	}
	if err == nil {
		d.Granule, err = byID(ctx, l.db, granule)
	}
	if err == nil && scored.Valid {
		var ps []Publication
		ps, err = query(ctx, l.db, scanPublication, "SELECT "+publicationColumns+" FROM publication AS p WHERE id = ?", scored.Int64)
		if len(ps) > 0 {
			d.Scored = ps[0]
		}
	}
	if err != nil {
		return DueSkill{}, false, fmt.Errorf("look up granules of %s to be scored: %w", dataset, err)
	}
	return d, true, nil
}

// EndSkill records a score. Ending it again changes nothing.
func (l *Ledger) EndSkill(ctx context.Context, id int64, s Skill, now time.Time) error {
	_, err := l.db.ExecContext(ctx, `UPDATE skill SET state = 'had', method = ?, mse = ?, bias = ?, covered90 = ?, pixels = ?, at = ?
		WHERE id = ? AND state = 'due'`, s.Method, s.MSE, s.Bias, s.Covered90, s.Pixels, text(now), id)
	if err != nil {
		return fmt.Errorf("record skill %d: %w", id, err)
	}
	return nil
}

// SkipSkill records that a granule cannot be scored, and why.
func (l *Ledger) SkipSkill(ctx context.Context, id int64, why string, now time.Time) error {
	_, err := l.db.ExecContext(ctx, "UPDATE skill SET state = 'skipped', note = ?, at = ? WHERE id = ? AND state = 'due'", why, text(now), id)
	if err != nil {
		return fmt.Errorf("skip skill %d: %w", id, err)
	}
	return nil
}

// SkillQuery selects scores.
type SkillQuery struct {
	Dataset  string
	Kind     SkillKind // empty: both
	From, To time.Time // days, both included; zero: open
	Limit    int       // the newest so many; 0: all
}

// Skills returns scores in the order of days.
func (l *Ledger) Skills(ctx context.Context, q SkillQuery) ([]Skill, error) {
	if q.Limit <= 0 {
		q.Limit = -1
	}
	to := q.To
	if to.IsZero() {
		to = farFuture()
	}
	skills, err := query(ctx, l.db, func(row scanner) (s Skill, err error) {
		return s, row.Scan(&s.Dataset, &s.Granule, &s.Revision, (*moment)(&s.Day), &s.Kind, &s.Method, &s.MSE, &s.Bias,
			&s.Covered90, &s.Pixels, (*moment)(&s.At))
	}, `SELECT s.dataset, g.name, g.revision, s.day, s.kind, s.method, s.mse, s.bias, s.covered90, s.pixels, s.at
		FROM skill AS s JOIN granule AS g ON g.id = s.granule
		WHERE s.dataset = ?1 AND s.day BETWEEN ?2 AND ?3 AND s.state = 'had' AND (?4 = '' OR s.kind = ?4)
		ORDER BY s.day DESC, s.id DESC LIMIT ?5`, q.Dataset, text(q.From), text(to), q.Kind, q.Limit)
	if err != nil {
		return nil, fmt.Errorf("list skill of %s: %w", q.Dataset, err)
	}
	slices.Reverse(skills)
	return skills, nil
}

// LatestErrors returns the mean squared errors of the latest n overlays of a
// dataset, without those of no pixel, in the order of days.
func (l *Ledger) LatestErrors(ctx context.Context, dataset string, n int) ([]float64, error) {
	scores, err := query(ctx, l.db, func(row scanner) (s Skill, err error) { return s, row.Scan(&s.MSE, &s.Pixels) },
		`SELECT mse, pixels FROM skill WHERE dataset = ? AND state = 'had' AND kind = 'overlay' ORDER BY day DESC, id DESC LIMIT ?`, dataset, n)
	if err != nil {
		return nil, fmt.Errorf("list errors of %s: %w", dataset, err)
	}
	slices.Reverse(scores)
	return Errors(scores), nil
}

// farFuture is later than any field.
func farFuture() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }

// Errors returns the mean squared errors of scores of at least one pixel, in
// their order.
func Errors(scores []Skill) []float64 {
	var all []float64
	for _, s := range scores {
		if s.Pixels > 0 {
			all = append(all, s.MSE)
		}
	}
	return all
}
