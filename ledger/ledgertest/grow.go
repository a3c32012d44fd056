// Package ledgertest makes ledgers of a size that tests and benchmarks would wait
// hours for by the usual way. It knows the layout of the file and none of its
// rules.
package ledgertest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver that sql.Open is asked for
)

// Past is what a ledger is to remember: granules that were fetched, filled,
// published and scored long ago.
type Past struct {
	Granules int           // of all datasets together
	Datasets int           // set0, set1 and so on, all of one length
	Step     time.Duration // from one granule of a dataset to the next
	End      time.Time     // time of the newest
	Body     string        // of every publication, as JSON
}

// Decades is a past of a hundred datasets with a granule a day.
func Decades(granules int) Past {
	day := 24 * time.Hour
	begin := time.Date(1985, 1, 1, 0, 0, 0, 0, time.UTC)
	return Past{Granules: granules, Datasets: 100, Step: day, End: begin.Add(time.Duration(granules/100) * day), Body: "{}"}
}

// Name is the name of the granule of a dataset that is n steps older than the
// newest.
func (p Past) Name(n int) string { return fmt.Sprintf("granule-%d.nc", p.Granules/p.Datasets-n) }

// Add writes a past into an existing ledger that is empty, as rows. Nobody may
// work on it meanwhile.
func (p Past) Add(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", "file://"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=cache_size(-200000)&_pragma=synchronous(OFF)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	begin := p.End.Add(-time.Duration(p.Granules/p.Datasets) * p.Step).Unix()
	moment := fmt.Sprintf("strftime('%%Y-%%m-%%dT%%H:%%M:%%S.000000000Z', %d + %d * (id / %d), 'unixepoch')", begin, int(p.Step.Seconds()), p.Datasets)
	for _, statement := range []string{
		`INSERT INTO granule (id, dataset, name, revision, sha256, size, mod_time, spool_path, state, reason, first_time, last_time,
			product_path, product_sha256, observed, covered, recorded, changed)
			WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ?)
			SELECT id, 'set' || (id % :sets), 'granule-' || (id / :sets) || '.nc', 1, 'sha' || id, 1000, :moment, 'spool', 'announced', '', :moment, :moment,
			'product', 'sha', 0.4, 1, :moment, :moment FROM n`,
		`INSERT INTO field_time SELECT dataset, first_time, id FROM granule WHERE id <= ?`,
		`INSERT INTO history (granule, state, at, note) SELECT granule.id, s.value, changed, '' FROM granule,
			json_each('["discovered", "fetched", "filled", "stored", "announced"]') AS s WHERE granule.id <= ?`,
		`INSERT INTO object SELECT dataset, name, size, mod_time, '', '', id, mod_time FROM granule WHERE id <= ?`,
		`INSERT INTO publication (id, granule, dataset, name, revision, time, file, size, body, stored)
			SELECT id, id, dataset, name, 1, first_time, 'file', 1000, :body, changed FROM granule WHERE id <= ?`,
		`INSERT INTO delivery (sink, dataset, publication, kind, state, queued, ended)
			SELECT 'disk', dataset, id, 'publish', 'delivered', changed, changed FROM granule WHERE id <= ?`,
		`INSERT INTO skill (granule, kind, dataset, day, state, method, mse, pixels, at)
			SELECT id, 'overlay', dataset, first_time, 'had', 'oi', 0.2, 1000, changed FROM granule WHERE id <= ?`,
		`INSERT INTO reopening (dataset, name, time, lane, opened, latest, due, neighbours, why, outcome, ended)
			SELECT dataset, name, first_time, 'live', changed, changed, changed, 1, 'came', 'unchanged', changed FROM granule WHERE id <= ?`,
	} {
		statement = strings.NewReplacer(":moment", moment, ":sets", fmt.Sprint(p.Datasets), ":body", quoted(p.Body)).Replace(statement)
		if _, err := tx.ExecContext(ctx, statement, p.Granules); err != nil {
			_ = tx.Rollback() // the first error counts
			return fmt.Errorf("%s: %w", statement[:40], err)
		}
	}
	return tx.Commit()
}

// quoted is a text as SQL has it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
