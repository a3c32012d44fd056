package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"lacuna/ledger/layout"
)

// ErrNotAside says that a granule is not set aside, so that there is nothing to
// retry.
var ErrNotAside = errors.New("it is not set aside")

// Retry puts a granule that was set aside back to Fetched, with its file at
// spoolPath; why is empty where an operator asked for it. It is one transaction
// and may be called through Join: the worker of the dataset takes it up.
func (l *Ledger) Retry(ctx context.Context, id int64, spoolPath, why string, now time.Time) error {
	err := transact(ctx, l.db, func(tx *sql.Tx) error {
		g, err := byID(ctx, tx, id)
		if err != nil {
			return err
		}
		if g.State != Quarantined {
			return fmt.Errorf("%w: %s revision %d is %s", ErrNotAside, g.Name, g.Revision, g.State)
		}
		g.SpoolPath = spoolPath
		if err := setArrival(ctx, tx, g); err != nil {
			return err
		}
		_, err = step(ctx, tx, g, move{to: Fetched, why: why, at: now})
		return err
	})
	if err != nil {
		return fmt.Errorf("retry granule %d: %w", id, err)
	}
	return nil
}

// GranuleQuery selects granules. An empty field selects all.
type GranuleQuery struct {
	Dataset  string
	Name     string
	State    State
	Unread   bool      // only those without times, with a state: they were not read, or could not be
	From, To time.Time // time of a field, both ends included
	Limit    int       // the newest so many; 0: all
}

// Granules returns the revisions that a query asks for, the newest row first.
// At least a name, a state or a time must be given, so that an index is
// followed.
func (l *Ledger) Granules(ctx context.Context, q GranuleQuery) ([]Granule, error) {
	// A condition that selects all is left out and not bound to nothing: SQLite would
	// prepare the text anew for each value that a partial index might depend on.
	var conditions []string
	var args []any
	and := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		args = append(args, values...)
	}
	ofDataset, of := "dataset IN (SELECT dataset FROM tally)", []any{}
	if q.Dataset != "" {
		ofDataset, of = "dataset = ?", []any{q.Dataset}
	}
	index, order := "", "id DESC"
	switch {
	case q.Name != "":
		and("name = ?", q.Name)
		and(ofDataset, of...)
	case !q.From.IsZero():
		and("id IN (SELECT granule FROM field_time WHERE time BETWEEN ? AND ? AND "+ofDataset+")", append([]any{text(q.From), text(q.To)}, of...)...)
	case q.State != "" && q.Unread:
		index, order = "INDEXED BY granule_unread ", "changed DESC, id DESC"
		and("first_time = ''")
		and(ofDataset, of...)
	case q.State != "":
		order = "changed DESC, id DESC"
		if q.Dataset != "" {
			and("+dataset = ?", q.Dataset) // in the order of changes, for its limit
		}
	default:
		return nil, errors.New("list granules: neither name, time nor state is given; give one of them")
	}
	if q.State != "" {
		and("state = ?", q.State)
	}
	if q.State == Quarantined && q.Name == "" && q.From.IsZero() {
		and("absent <> 1")
	}
	limit := ""
	if q.Limit > 0 {
		limit = " LIMIT ?"
		args = append(args, q.Limit)
	}
	gs, err := l.granules(ctx, index+"WHERE "+strings.Join(conditions, " AND ")+" ORDER BY "+order+limit, args...)
	if err != nil {
		return nil, fmt.Errorf("list granules: %w", err)
	}
	return gs, nil
}

// Deliveries returns the deliveries of a granule's products, made and waiting,
// in the order of the queue.
func (l *Ledger) Deliveries(ctx context.Context, dataset, granule string) ([]Delivery, error) {
	ds, err := l.deliveries(ctx, "SELECT "+deliveryColumns+` FROM publication AS p JOIN delivery AS d ON d.publication = p.id
		WHERE p.dataset = ? AND p.name = ? ORDER BY d.id`, dataset, granule)
	if err != nil {
		return nil, fmt.Errorf("list deliveries of %s: %w", granule, err)
	}
	return ds, nil
}

// Named returns the granules with a name, or with a path that ends in it, as
// people type it: dataset and full name of each.
func (l *Ledger) Named(ctx context.Context, dataset, name string) ([]Object, error) {
	found, err := query(ctx, l.db, func(row scanner) (o Object, err error) {
		return o, row.Scan(&o.Dataset, &o.Name)
	}, `SELECT DISTINCT dataset, name FROM granule WHERE `+layout.FileOfName+` = ?3 AND (?1 = '' OR +dataset = ?1)
		AND (name = ?2 OR substr(name, -length(?2) - 1) = '/' || ?2) ORDER BY dataset, name`, dataset, name, name[strings.LastIndexByte(name, '/')+1:])
	if err != nil {
		return nil, fmt.Errorf("look up granules named %s: %w", name, err)
	}
	return found, nil
}
