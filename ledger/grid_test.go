package ledger

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"lacuna/ledger/layout"
)

func TestMostVotesElectAndATieChangesNothing(t *testing.T) {
	for _, c := range []struct {
		current int64
		votes   map[int64]int
		want    int64
	}{
		{1, map[int64]int{1: 1}, 1},
		{1, map[int64]int{1: 1, 2: 1}, 1},
		{1, map[int64]int{1: 1, 2: 2}, 2},
		{2, map[int64]int{1: 2, 2: 2, 3: 2}, 2},
		{1, map[int64]int{1: 1, 2: 2, 3: 2}, 2}, // the one that was seen first
		{1, map[int64]int{2: 1}, 2},             // none is left of the current one
	} {
		var tally []gridCount
		all := 0
		for seen := int64(1); seen <= 3; seen++ {
			if n, ok := c.votes[seen]; ok {
				tally = append(tally, gridCount{seen, n})
				all += n
			}
		}
		next, votes, counted := elect(c.current, tally)
		if next != c.want || votes != c.votes[c.want] || counted != all {
			t.Errorf("elect(%d, %v) = %d with %d of %d, want %d", c.current, c.votes, next, votes, counted, c.want)
		}
	}
}

// In a ledger of before, a dataset with products has settled its grid; one that
// has few, and had others set aside for theirs, has those read again.
func TestAnOldLedgerKeepsASettledGridAndReadsTheRestAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := sql.Open("sqlite", dataSource(path))
	must(t, err)
	for i, step := range layout.Steps()[:4] {
		must(t, apply(t.Context(), db, step, i+1))
	}
	add := func(dataset, name, state, reason string) {
		product := ""
		if state == "announced" {
			product = "p"
		}
		_, err := db.ExecContext(t.Context(), `INSERT INTO granule (dataset, name, revision, sha256, size, mod_time, spool_path,
			state, reason, first_time, last_time, product_path, product_sha256, recorded, changed)
			VALUES (?, ?, 1, 'aa', 7, ?, 'x', ?, ?, '', '', ?, '', ?, ?)`, dataset, name, text(at(0)), state, reason, product, text(at(0)), text(at(0)))
		must(t, err)
	}
	for _, dataset := range []string{"old", "poisoned"} {
		_, err := db.ExecContext(t.Context(), "INSERT INTO grid VALUES (?, 'first', '[1]', ?)", dataset, text(at(0)))
		must(t, err)
		add(dataset, "a.nc", "announced", "")
		add(dataset, "z.nc", "quarantined", "z.nc: it is truncated; fetch it again")
		for i := range 3 {
			add(dataset, fmt.Sprintf("odd%d.nc", i), "quarantined",
				"odd.nc: its grid is 2, but dataset chl has been 1 since 2024-01-01; if the producer changed the grid, configure it as a new dataset")
		}
	}
	for i := range 9 {
		add("old", fmt.Sprintf("b%d.nc", i), "announced", "")
	}
	must(t, db.Close())
	l := open(t, path)
	for dataset, want := range map[string]struct{ again, agree int }{"old": {0, 5}, "poisoned": {3, 1}} {
		again, err := l.Regained(t.Context(), dataset)
		must(t, err)
		votes, err := l.GridVotes(t.Context(), dataset)
		must(t, err)
		if len(again) != want.again || len(votes) == 0 || !votes[0].Current || votes[0].Granules != want.agree {
			t.Errorf("%s: %d are read again and the votes are %+v, want %+v", dataset, len(again), votes, want)
		}
	}
	n, err := l.ForgetGrid(t.Context(), "old", "a test", at(1))
	must(t, err)
	if again, err := l.Regained(t.Context(), "old"); n != 3 || len(again) != 3 || err != nil {
		t.Errorf("a reset has %d, %d read again, %v; want 3", n, len(again), err)
	}
	if _, known, err := l.Grid(t.Context(), "old"); known || err != nil {
		t.Errorf("after a reset a grid is known: %v, %v", known, err)
	}
}
