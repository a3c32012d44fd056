package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Taken is a revision that a sink has with bytes that are not of this state:
// its number must not be used again.
type Taken struct {
	Dataset  string
	Granule  string
	Revision int
	Sink     string
	SHA256   string // hash of the sink's bytes; empty: not known
	Ours     string // hash of this state's bytes under the number; empty: none
	At       time.Time
}

// ErrRenumbered says that a granule has got another revision since its product
// was begun: it is to be made again.
var ErrRenumbered = errors.New("granule has another revision by now")

// Promised returns the hash of a revision that the ledger knows to be
// published; ok is false where it does not, or where it was displaced.
func (l *Ledger) Promised(ctx context.Context, dataset, granule string, revision int) (sha256 string, ok bool, err error) {
	sha256, displaced, err := l.promise(ctx, dataset, granule, revision)
	if displaced {
		sha256 = ""
	}
	return sha256, sha256 != "", err
}

// Knows reports whether a sink holds a revision as the ledger delivered it: the
// promised bytes, or the retraction of displaced ones. ours is the promised
// hash; empty: none was.
func (l *Ledger) Knows(ctx context.Context, t Taken) (ours string, known bool, err error) {
	ours, displaced, err := l.promise(ctx, t.Dataset, t.Granule, t.Revision)
	known = ours != "" && (t.SHA256 == "" || t.SHA256 == ours)
	if displaced {
		ours = ""
	}
	return ours, known, err
}

// promise returns the hash of a revision that was published; empty: none was.
func (l *Ledger) promise(ctx context.Context, dataset, granule string, revision int) (sha256 string, displaced bool, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT g.product_sha256, p.displaced FROM publication AS p JOIN granule AS g ON g.id = p.granule
		WHERE p.dataset = ? AND p.name = ? AND p.revision = ?`, dataset, granule, revision).Scan(&sha256, &displaced)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look up revision %d of %s: %w", revision, granule, err)
	}
	return sha256, displaced, nil
}

// Take records that a revision is taken, and reports whether that is news.
// Revisions of the granule that are unfinished and not above it get the next
// numbers above everything that is known.
func (l *Ledger) Take(ctx context.Context, t Taken) (news bool, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		news, err = take(ctx, tx, t)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("record revision %d of %s as taken: %w", t.Revision, t.Granule, err)
	}
	return news, nil
}

func take(ctx context.Context, tx *sql.Tx, t Taken) (bool, error) {
	result, err := tx.ExecContext(ctx, `INSERT INTO taken (dataset, name, revision, sink, sha256, ours, at)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, t.Dataset, t.Granule, t.Revision, t.Sink, t.SHA256, t.Ours, text(t.At))
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return false, err
	}
	unfinished, err := query(ctx, tx, scanGranule, "SELECT "+granuleColumns+` FROM granule
		WHERE dataset = ? AND name = ? AND revision <= ? AND state IN ('fetched', 'filled') ORDER BY revision`, t.Dataset, t.Granule, t.Revision)
	if err != nil {
		return false, err
	}
	for _, g := range unfinished {
		if err := renumber(ctx, tx, g, t); err != nil {
			return false, err
		}
	}
	return n > 0, nil
}

// renumber gives an unfinished revision the next number.
func renumber(ctx context.Context, tx *sql.Tx, g Granule, t Taken) error {
	latest, _, err := newest(ctx, tx, g.Dataset, g.Name)
	if err != nil {
		return err
	}
	next, err := nextRevision(ctx, tx, latest)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE granule SET revision = ? WHERE id = ?", next, g.ID); err != nil {
		return err
	}
	note := fmt.Sprintf("revision %d is taken by other bytes in %s: it goes on as revision %d", g.Revision, t.Sink, next)
	return addHistory(ctx, tx, g.ID, Event{State: g.State, At: t.At, Note: note})
}

// nextRevision returns the number that follows the newest revision of a
// granule and all that are taken.
func nextRevision(ctx context.Context, tx *sql.Tx, newest Granule) (int, error) {
	taken := 0
	err := tx.QueryRowContext(ctx, "SELECT coalesce(max(revision), 0) FROM taken WHERE dataset = ? AND name = ?",
		newest.Dataset, newest.Name).Scan(&taken)
	return max(newest.Revision, taken) + 1, err
}

// Unheard returns the revisions of a granule's product below a number that wait
// for a sink and were stored after a time. A sink that has a later revision,
// which it had at that time, would not announce them.
func (l *Ledger) Unheard(ctx context.Context, t Taken, after time.Time) ([]int, error) {
	all, err := query(ctx, l.db, func(row scanner) (revision int, err error) { return revision, row.Scan(&revision) },
		`SELECT p.revision FROM publication AS p WHERE p.dataset = ? AND p.name = ? AND p.revision < ? AND p.stored > ? AND p.retracted = ''
		AND EXISTS (SELECT 1 FROM delivery AS d WHERE d.publication = p.id AND d.sink = ? AND d.state = 'waiting') ORDER BY p.revision`,
		t.Dataset, t.Granule, t.Revision, text(after), t.Sink)
	if err != nil {
		return nil, fmt.Errorf("look up deliveries to %s of %s: %w", t.Sink, t.Granule, err)
	}
	return all, nil
}

// Renumber records that the number of an unfinished granule is taken, and
// returns the granule with its new one.
func (l *Ledger) Renumber(ctx context.Context, id int64, t Taken) (g Granule, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		if t.Revision > 0 {
			if _, err := take(ctx, tx, t); err != nil {
				return err
			}
		}
		g, err = byID(ctx, tx, id)
		return err
	})
	if err != nil {
		return Granule{}, fmt.Errorf("renumber granule %d: %w", id, err)
	}
	return g, nil
}

// Displace records that a sink has a revision of this state, whose hash is
// t.Ours, with other bytes. Our publication is retracted, where it was
// delivered as well, and its bytes are to be made again as the next revision
// above everything that is known, unless a later one holds already. known is
// false where the ledger has no such publication, or has displaced it before.
func (l *Ledger) Displace(ctx context.Context, revision int, t Taken) (known bool, err error) {
	err = transact(ctx, l.db, func(tx *sql.Tx) error {
		known, err = displace(ctx, tx, revision, t)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("displace revision %d of %s: %w", revision, t.Granule, err)
	}
	return known, nil
}

func displace(ctx context.Context, tx *sql.Tx, revision int, t Taken) (bool, error) {
	if _, err := take(ctx, tx, t); err != nil {
		return false, err
	}
	ours, err := query(ctx, tx, scanPublication, "SELECT "+publicationColumns+` FROM publication AS p
		WHERE dataset = ? AND name = ? AND revision = ? AND displaced = 0`, t.Dataset, t.Granule, revision)
	if err != nil || len(ours) == 0 {
		return false, err
	}
	p := ours[0]
	p.Why = fmt.Sprintf("revision %d is taken by other bytes in %s: a later one replaces it", revision, t.Sink)
	told, err := query(ctx, tx, func(row scanner) (sink string, err error) { return sink, row.Scan(&sink) },
		"SELECT DISTINCT sink FROM delivery WHERE publication = ? AND kind <> 'retract' AND state = 'delivered'", p.ID)
	if err != nil {
		return false, err
	}
	for _, statement := range []string{
		"DELETE FROM delivery WHERE publication = ? AND kind <> 'retract' AND state <> 'delivered'",
		"UPDATE publication SET displaced = 1 WHERE id = ?",
	} {
		if _, err := tx.ExecContext(ctx, statement, p.ID); err != nil {
			return false, err
		}
	}
	if !p.Retracted.IsZero() {
		return true, nil // it is retracted already
	}
	if err := retract(ctx, tx, p, told, t.At); err != nil {
		return false, err
	}
	if err := endDisplaced(ctx, tx, p, t.At); err != nil {
		return false, err
	}
	return true, follow(ctx, tx, t, p.Why)
}

// endDisplaced ends the work on the granule of a displaced publication: it is
// no longer announced.
func endDisplaced(ctx context.Context, tx *sql.Tx, p Publication, at time.Time) error {
	rows, err := query(ctx, tx, scanGranule, "SELECT "+granuleColumns+" FROM granule WHERE dataset = ? AND name = ? AND revision = ?",
		p.Dataset, p.Granule, p.Revision)
	if err != nil || len(rows) == 0 || rows[0].State != Stored {
		return err
	}
	_, err = step(ctx, tx, rows[0], move{to: Announced, at: at})
	return err
}

// follow makes the next revision of a granule, unless one above the taken
// number holds, or its content was set aside.
func follow(ctx context.Context, tx *sql.Tx, t Taken, why string) error {
	var later int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM publication WHERE dataset = ? AND name = ? AND revision > ? AND retracted = ''`,
		t.Dataset, t.Granule, t.Revision).Scan(&later)
	if err != nil || later > 0 {
		return err
	}
	_, err = revise(ctx, tx, Revision{Dataset: t.Dataset, Granule: t.Granule, Cause: Redo, Why: why}, t.At)
	if errors.Is(err, ErrNothingToRevise) {
		return nil
	}
	return err
}

// Takings counts the revisions that were found to be taken in a sink.
type Takings struct {
	Sink      string
	Conflicts int // taken with other bytes than ours
	Unknown   int // taken and unknown to the ledger
}

// CountTaken counts the revisions that were found to be taken since a time.
func (l *Ledger) CountTaken(ctx context.Context, since time.Time) ([]Takings, error) {
	all, err := query(ctx, l.db, func(row scanner) (t Takings, err error) {
		return t, row.Scan(&t.Sink, &t.Conflicts, &t.Unknown)
	}, "SELECT sink, sum(ours <> ''), sum(ours = '') FROM taken WHERE at >= ? GROUP BY sink", text(since))
	if err != nil {
		return nil, fmt.Errorf("count taken revisions: %w", err)
	}
	return all, nil
}

// TakenSince returns the revisions that were found to be taken since a time,
// the latest first, at most n.
func (l *Ledger) TakenSince(ctx context.Context, since time.Time, n int) ([]Taken, error) {
	all, err := query(ctx, l.db, func(row scanner) (t Taken, err error) {
		return t, row.Scan(&t.Dataset, &t.Granule, &t.Revision, &t.Sink, &t.SHA256, &t.Ours, (*moment)(&t.At))
	}, "SELECT dataset, name, revision, sink, sha256, ours, at FROM taken WHERE at >= ? ORDER BY at DESC LIMIT ?", text(since), n)
	if err != nil {
		return nil, fmt.Errorf("list taken revisions: %w", err)
	}
	return all, nil
}
