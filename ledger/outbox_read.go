package ledger

import (
	"context"
	"fmt"
	"time"
)

// Due returns the delivery at the head of every dataset's queue for a sink. It
// follows an index from head to head, so that a long queue costs no more than a
// short one.
func (l *Ledger) Due(ctx context.Context, sink string) ([]Delivery, error) {
	ds, err := l.deliveries(ctx, `
		WITH RECURSIVE line (dataset) AS (
			SELECT min(dataset) FROM delivery WHERE sink = ?1 AND state = 'waiting'
			UNION ALL
			SELECT (SELECT min(dataset) FROM delivery WHERE sink = ?1 AND state = 'waiting' AND dataset > line.dataset)
			FROM line WHERE line.dataset IS NOT NULL)
		SELECT `+deliveryColumns+` FROM line JOIN delivery AS d ON d.id =
			(SELECT min(id) FROM delivery WHERE sink = ?1 AND state = 'waiting' AND dataset = line.dataset)
		JOIN publication AS p ON p.id = d.publication ORDER BY d.id`, sink)
	if err != nil {
		return nil, fmt.Errorf("list deliveries due to %s: %w", sink, err)
	}
	return ds, nil
}

// SetAside returns the deliveries that were set aside, oldest first, at most n.
func (l *Ledger) SetAside(ctx context.Context, n int) ([]Delivery, error) {
	ds, err := l.deliveries(ctx, "SELECT "+deliveryColumns+` FROM delivery AS d INDEXED BY delivery_aside CROSS JOIN publication AS p ON p.id = d.publication
		WHERE d.state = 'aside' ORDER BY d.id LIMIT ?`, n)
	if err != nil {
		return nil, fmt.Errorf("list deliveries set aside: %w", err)
	}
	return ds, nil
}

// Backlog counts the deliveries that wait for one sink.
type Backlog struct {
	Sink      string
	Waiting   int
	Bytes     int64     // size of the waiting files, retractions not counted
	Oldest    time.Time // when the first of them was queued; zero: none waits
	Aside     int
	Delivered int
	Attempts  int    // attempts at the head of a queue, the most of any dataset
	Problem   string // error of the last attempt at that delivery
}

// Backlogs returns the backlog of every sink that ever had a delivery.
func (l *Ledger) Backlogs(ctx context.Context) ([]Backlog, error) {
	backlogs, err := query(ctx, l.db, func(row scanner) (b Backlog, err error) {
		return b, row.Scan(&b.Sink, &b.Waiting, &b.Bytes, (*moment)(&b.Oldest), &b.Aside, &b.Delivered)
	}, `WITH line AS MATERIALIZED (SELECT d.sink AS sink, count(*) AS waiting, min(d.queued) AS oldest,
			sum(CASE d.kind WHEN 'retract' THEN 0 ELSE p.size END) AS bytes
			FROM delivery AS d INDEXED BY delivery_line CROSS JOIN publication AS p ON p.id = d.publication
			WHERE d.state = 'waiting' GROUP BY d.sink)
		SELECT t.sink, coalesce(line.waiting, 0), coalesce(line.bytes, 0), coalesce(line.oldest, ''),
			coalesce((SELECT deliveries FROM delivery_tally WHERE sink = t.sink AND state = 'aside'), 0),
			coalesce((SELECT deliveries FROM delivery_tally WHERE sink = t.sink AND state = 'delivered'), 0)
		FROM (SELECT DISTINCT sink FROM delivery_tally WHERE deliveries > 0) AS t LEFT JOIN line USING (sink) ORDER BY t.sink`)
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	for i := range backlogs {
		heads, err := l.Due(ctx, backlogs[i].Sink)
		if err != nil {
			return nil, err
		}
		for _, head := range heads {
			if head.Attempts > backlogs[i].Attempts {
				backlogs[i].Attempts, backlogs[i].Problem = head.Attempts, head.Problem
			}
		}
	}
	return backlogs, nil
}

// Current returns the newest revision of a granule's product that holds; ok is
// false where there is none.
func (l *Ledger) Current(ctx context.Context, dataset, granule string) (p Publication, ok bool, err error) {
	all, err := query(ctx, l.db, scanPublication, "SELECT "+publicationColumns+` FROM publication AS p
		WHERE dataset = ? AND name = ? AND retracted = '' ORDER BY revision DESC LIMIT 1`, dataset, granule)
	if err != nil {
		return Publication{}, false, fmt.Errorf("look up product of %s: %w", granule, err)
	}
	if len(all) == 0 {
		return Publication{}, false, nil
	}
	return all[0], true, nil
}

// Publications returns the publications of a dataset, or of all, with a time
// from through to, in the order in which they were promised. Zero times are
// open.
func (l *Ledger) Publications(ctx context.Context, dataset string, from, to time.Time) ([]Publication, error) {
	if to.IsZero() {
		to = farFuture()
	}
	where := "WHERE dataset = ?1 AND time BETWEEN ?2 AND ?3 ORDER BY id"
	if dataset == "" { // another index
		where = "WHERE ?1 = '' AND time BETWEEN ?2 AND ?3 ORDER BY id"
	}
	all, err := query(ctx, l.db, scanPublication, "SELECT "+publicationColumns+" FROM publication AS p "+where, dataset, text(from), text(to))
	if err != nil {
		return nil, fmt.Errorf("list publications: %w", err)
	}
	return all, nil
}

// Awaited reports whether a delivery of a file is still due: then the file must
// stay.
func (l *Ledger) Awaited(ctx context.Context, dataset, granule string, revision int) (bool, error) {
	var n int
	err := l.db.QueryRowContext(ctx, `SELECT count(*) FROM publication AS p JOIN delivery AS d ON d.publication = p.id
		WHERE p.dataset = ? AND p.name = ? AND p.revision = ? AND d.kind <> 'retract' AND d.state <> 'delivered'`,
		dataset, granule, revision).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look up deliveries of %s: %w", granule, err)
	}
	return n > 0, nil
}

// publicationColumns are the columns of publication p that scanPublication
// takes, in its order.
const publicationColumns = `p.id, p.dataset, p.name, p.revision, p.time, p.file, p.size, p.body, p.stored, p.retracted, p.why, p.displaced`

func scanPublication(row scanner) (p Publication, err error) { return p, row.Scan(p.destinations()...) }

func (p *Publication) destinations() []any {
	return []any{
		&p.ID, &p.Dataset, &p.Granule, &p.Revision, (*moment)(&p.Time), &p.File, &p.Size, &p.Body,
		(*moment)(&p.Stored), (*moment)(&p.Retracted), &p.Why, &p.Displaced,
	}
}

const deliveryColumns = `d.id, d.sink, d.kind, d.state, d.attempts, d.problem, d.queued, d.ended, ` + publicationColumns

func (l *Ledger) deliveries(ctx context.Context, text string, args ...any) ([]Delivery, error) {
	return query(ctx, l.db, func(row scanner) (d Delivery, err error) {
		dest := append([]any{
			&d.ID, &d.Sink, &d.Kind, &d.State, &d.Attempts, &d.Problem, (*moment)(&d.Queued), (*moment)(&d.Ended),
		}, d.Publication.destinations()...)
		return d, row.Scan(dest...)
	}, text, args...)
}
