package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/ledger/ledgertest"

	"modernc.org/sqlite"
)

// recorder is a connection to a ledger that remembers every statement.
type recorder struct {
	path string
	mu   sync.Mutex
	said map[string]bool
}

func (r *recorder) Connect(context.Context) (driver.Conn, error) {
	conn, err := (&sqlite.Driver{}).Open(dataSource(r.path))
	return &recordedConn{Conn: conn, recorder: r}, err
}

func (r *recorder) Driver() driver.Driver { return &sqlite.Driver{} }

func (r *recorder) note(statement string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[statement] = true
}

type recordedConn struct {
	driver.Conn
	*recorder
}

func (c *recordedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.note(text)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

func (c *recordedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.note(text)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func (c *recordedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

// grow adds n granules of the past to a ledger.
func grow(t *testing.T, path string, n int) {
	t.Helper()
	must(t, ledgertest.Decades(n).Add(t.Context(), path))
}

// aDayOfWork runs the statements of the daemon for a granule of this name, of
// the pages and of the commands.
func aDayOfWork(t *testing.T, l *Ledger, name string, now time.Time) {
	t.Helper()
	ctx, set := t.Context(), "set7"
	for i, of := range []string{"first", "first", "next"} { // a day, its replacement and the next day
		a := arrival(of+name, fmt.Sprint(name, i))
		a.Dataset, a.Lane = set, Live
		_, err := l.Holding(ctx, set, a.SHA256)
		must(t, err)
		g, _, err := l.Arrive(ctx, a, now)
		must(t, err)
		must(t, l.Polled(ctx, set, now))
		pending, err := l.FirstPending(ctx, set, 1)
		must(t, err)
		if len(pending) != 1 {
			t.Fatalf("%d pending", len(pending))
		}
		_, err = l.Regained(ctx, set)
		must(t, err)
		_, err = l.VoteGrid(ctx, Vote{
			Dataset: set, Name: g.Name, Granule: g.ID, Grid: Grid{Fingerprint: of, JSON: of}, Settled: 5, Sinks: bothSinks,
			Same: func(json string) (bool, error) { return json == of, nil },
		}, now)
		must(t, err)
		p := window(0)
		p.Times, p.Settle = []time.Time{now.Add(time.Duration(i) * time.Minute)}, 0
		_, err = l.Place(ctx, g.ID, p, now)
		must(t, err)
		_, err = l.Window(ctx, set, now.Add(-10*day), now.Add(5*day))
		must(t, err)
		must(t, l.Advance(ctx, g.ID, Filled, now))
		_, _, err = l.Current(ctx, set, g.Name)
		must(t, err)
		o := outgoing(g, 0)
		o.Publication.Time, o.Skill = now, true
		must(t, l.StoreAndQueue(ctx, g.ID, o, now))
	}
	for _, sink := range bothSinks {
		due, err := l.Due(ctx, sink)
		must(t, err)
		must(t, l.FailDelivery(ctx, due[0].ID, "away", false, now))
		must(t, l.EndDelivery(ctx, due[0].ID, now))
	}
	_, err := l.Awaited(ctx, set, "next"+name, 1)
	must(t, err)
	if r, ok, err := l.DueReopening(ctx, set, Live, now); err != nil || !ok {
		t.Fatalf("no product was reopened: %v", err)
	} else if _, err := l.Revise(ctx, Revision{Dataset: set, Granule: r.Granule, Cause: Reanalysis, Why: r.Why}, now); err != nil {
		t.Fatal(err)
	}
	due, ok, err := l.NextSkill(ctx, set)
	if err != nil || !ok {
		t.Fatalf("nothing is to be scored: %v", err)
	}
	must(t, l.EndSkill(ctx, due.ID, Skill{Method: "oi", MSE: 1, Pixels: 1}, now))
	_, err = l.Starts(ctx, set, now.Add(-15*day))
	must(t, err)
	_, err = l.AddAbsence(ctx, Absence{Dataset: set, Name: "absent" + name, Times: []time.Time{now.Add(-day)}, Lane: Live}, now)
	must(t, err)
	aComparison(t, l, set, name, now)
	aLook(t, l, set)
	pending, err := l.Pending(ctx, set) // leave nothing behind for the next day
	must(t, err)
	for _, g := range pending {
		must(t, l.Quarantine(ctx, g.ID, "end of the day", now))
	}
}

// aComparison runs the statements of a start about sinks, with one revision
// that the ledger does not know and one that has other bytes there.
func aComparison(t *testing.T, l *Ledger, set, name string, now time.Time) {
	t.Helper()
	ctx := t.Context()
	_, err := l.Identity(ctx, Identity{State: "ours", Epoch: 1, Since: now})
	must(t, err)
	_, err = l.Compared(ctx, "kafka", 1)
	must(t, err)
	_, err = l.LastStored(ctx)
	must(t, err)
	seen := Taken{Dataset: set, Granule: "next" + name, Revision: 1, Sink: "kafka", SHA256: "theirs", Ours: "ours", At: now}
	_, known, err := l.Knows(ctx, seen)
	if must(t, err); known {
		t.Error("other bytes are known")
	}
	_, err = l.Displace(ctx, 1, seen)
	must(t, err)
	seen.Granule, seen.Revision, seen.Ours = "first"+name, 9, ""
	_, err = l.Take(ctx, seen)
	must(t, err)
	_, err = l.Unheard(ctx, seen, now)
	must(t, err)
	must(t, l.SetCompared(ctx, "kafka", 1, now))
}

// aLook runs the statements of a page.
func aLook(t *testing.T, l *Ledger, set string) {
	t.Helper()
	ctx := t.Context()
	_, err := l.Counts(ctx)
	must(t, err)
	_, err = l.Backlogs(ctx)
	must(t, err)
	_, _, err = l.Newest(ctx, set)
	must(t, err)
	_, err = l.Unseen(ctx, set, at(0).Add(-30*day))
	must(t, err)
	_, err = l.Recent(ctx, 20, Stored, Announced)
	must(t, err)
	_, err = l.Recent(ctx, 20)
	must(t, err)
	_, err = l.Skills(ctx, SkillQuery{Dataset: set, Kind: Overlay, Limit: 74})
	must(t, err)
	_, err = l.Reopenings(ctx, ReopeningQuery{Dataset: set, OpenOnly: true})
	must(t, err)
	_, err = l.Reopenings(ctx, ReopeningQuery{Dataset: set, Granule: "granule-3.nc"})
	must(t, err)
	_, err = l.SetAside(ctx, 20)
	must(t, err)
	_, err = l.GridVotes(ctx, set)
	must(t, err)
	_, err = l.GridChanges(ctx, set, 20)
	must(t, err)
	_, err = l.LastPoll(ctx, set)
	must(t, err)
	_, err = l.CountTaken(ctx, at(0))
	must(t, err)
	_, err = l.TakenSince(ctx, at(0), 20)
	must(t, err)
}

// Whatever the daemon does with a granule follows indexes: no statement walks
// through a table, and none sorts an unbounded result.
func TestNoStatementOfADaysWorkWalksThroughATable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	must(t, open(t, path).Close())
	grow(t, path, 5000)
	r := &recorder{path: path, said: map[string]bool{}}
	l := &Ledger{path: path, db: prepare(sql.OpenDB(r))}
	defer l.Close()
	l.db.SetMaxOpenConns(1)
	aDayOfWork(t, l, "new.nc", at(0))
	small := []string{"tally", "delivery_tally", "poll", "t", "line", "CONSTANT ROW", "n"} // a row a dataset or sink, and results of subqueries
	statements := 0
	for _, text := range slices.Collect(maps.Keys(r.said)) {
		if !strings.HasPrefix(strings.TrimSpace(text), "BEGIN") && !strings.HasPrefix(text, "PRAGMA") {
			statements++
			wantIndexed(t, l, text, small)
		}
	}
	if statements < 40 {
		t.Errorf("only %d statements were seen", statements)
	}
}

// planOf returns the steps by which a statement is carried out.
func planOf(t *testing.T, l *Ledger, text string) []string {
	t.Helper()
	const most = 24 // parameters
	args := make([]any, min(strings.Count(text, "?"), most))
	for i := range args {
		args[i] = ""
	}
	if strings.Contains(text, "?1") {
		args = args[:countNumbered(text)]
	}
	steps, err := query(t.Context(), l.db, func(row scanner) (detail string, err error) {
		var skip any
		return detail, row.Scan(&skip, &skip, &skip, &detail)
	}, "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return steps
}

func wantIndexed(t *testing.T, l *Ledger, text string, small []string) {
	t.Helper()
	for _, step := range planOf(t, l, text) {
		words := strings.Fields(step)
		bounded := strings.Contains(step, "granule_by_change") || strings.Contains(step, "delivery_line") || // in their order up to a limit; waiting deliveries only
			strings.Contains(step, "delivery_aside")
		if words[0] == "SCAN" && len(words) > 1 && !slices.Contains(small, words[1]) && !bounded {
			t.Errorf("%s\n  of: %s", step, text)
		}
	}
}

// countNumbered returns the highest N of the parameters ?N.
func countNumbered(text string) int {
	n := 0
	for i := 1; i <= 9; i++ {
		if strings.Contains(text, fmt.Sprintf("?%d", i)) {
			n = i
		}
	}
	return n
}

// The long suite takes the figures that the README gives; here thirty times
// the rows must not take four times the time.
func TestWorkCostsTheSameInAGrownLedger(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("measures times: LACUNA_LONG=1 on a quiet machine")
	}
	sizes, most := []int{10_000, 1_000_000}, 4.0
	var work, look [2]time.Duration
	for i, n := range sizes {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("ledger-%d.db", n))
		must(t, open(t, path).Close())
		grow(t, path, n)
		began := time.Now()
		l, err := Open(t.Context(), path)
		must(t, err)
		opened := time.Since(began)
		if opened > 2*time.Second {
			t.Errorf("a ledger of %d granules takes %v to open, want 2 s", n, opened)
		}
		work[i] = typical(9, func(k int) { aDayOfWork(t, l, fmt.Sprintf("new-%d.nc", k), at(24*k)) })
		look[i] = typical(9, func(int) { aLook(t, l, "set7") })
		began = time.Now()
		must(t, l.Check(t.Context()))
		t.Logf("%d granules: opened in %v; a granule's work %v, a look %v; checked in %v", n, opened.Round(time.Millisecond),
			work[i].Round(10*time.Microsecond), look[i].Round(10*time.Microsecond), time.Since(began).Round(time.Millisecond))
		must(t, l.Close())
	}
	for name, pair := range map[string][2]time.Duration{"work": work, "a look": look} {
		if ratio := float64(pair[1]) / float64(pair[0]); ratio > most {
			t.Errorf("%s takes %.1f times as long with %d times the granules, want at most %v", name, ratio, sizes[1]/sizes[0], most)
		}
	}
}

// typical returns the median time of n calls.
func typical(n int, call func(int)) time.Duration {
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		call(i)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[n/2]
}
