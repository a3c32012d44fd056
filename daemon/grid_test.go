package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/gridpin"
	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/daemon/work"
	"lacuna/ledger"
)

// days is an archive in which every letter is a day: g on the grid of most days,
// o on an odd one, x on a third.
type days struct {
	b     *bench
	names []string
}

var worldOf = map[rune][2]int{'g': {24, 32}, 'o': {30, 32}, 'x': {24, 40}}

// deliver puts the days of a word into the archive, after the earlier ones.
func (d *days) deliver(t *testing.T, word string) {
	t.Helper()
	for _, letter := range word {
		w := world(t, worldOf[letter][0], worldOf[letter][1])
		g := w.Granule(firstVersions(w, 12)[len(d.names)])
		// Names sort by day, in whatever order the simulator delivers.
		g.Name = fmt.Sprintf("202401%02d_%c.nc", len(d.names)+1, letter)
		put(t, d.b.archive(), g)
		d.names = append(d.names, g.Name)
	}
}

func newDays(t *testing.T) *days {
	b := newBench(t)
	b.plain()
	b.cfg.Datasets[0].EmptyDays = work.SkipEmptyDays // a day that was set aside would be filled from the others
	return &days{b: b}
}

// fate returns the outcome of every day: p for a product that was not retracted, a
// for set aside, - for anything else.
func (d *days) fate(t *testing.T) string {
	t.Helper()
	fate := ""
	book, err := ledger.Join(t.Context(), d.b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	for _, name := range d.names {
		rows, err := book.Granules(t.Context(), ledger.GranuleQuery{Dataset: "sea", Name: name, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, holds, err := book.Current(t.Context(), "sea", name)
		if err != nil {
			t.Fatal(err)
		}
		letter := "-"
		switch {
		case len(rows) == 1 && rows[0].State == ledger.Quarantined && !holds:
			letter = "a"
		case len(rows) == 1 && rows[0].State == ledger.Announced && holds:
			letter = "p"
		}
		fate += letter
	}
	return fate
}

func (d *days) want(t *testing.T, fate string) {
	t.Helper()
	if got := d.fate(t); got != fate {
		t.Errorf("the days became %s, want %s\n%s", got, fate, d.b.log)
	}
	if files := d.b.products(t); len(files) != strings.Count(fate, "p") {
		t.Errorf("the products are %v, want those of %s", files, fate)
	}
}

func (d *days) grid(t *testing.T) (s operate.GridStatus) {
	t.Helper()
	d.b.operate(t, func(o *operate.Operations) error {
		all, err := o.Grids(t.Context(), "sea")
		if err == nil {
			s = all[0]
		}
		return err
	})
	return s
}

func TestAnOddFileAmongTheFirstIsSetAsideWhereverItSorts(t *testing.T) {
	oneByOne(t)
	for _, c := range []struct{ word, fate string }{
		{"ogggg", "apppp"},
		{"ggogg", "ppapp"},
		{"ggggo", "ppppa"},
		{"oxggg", "aappp"},
		{"g", "p"},   // the first is filled at once
		{"go", "pa"}, // a tie: the first grid stands
		{"oog", "ppa"},
	} {
		t.Run(c.word, func(t *testing.T) {
			d := newDays(t)
			d.deliver(t, c.word)
			if s := d.b.once(t); s.Unfinished != 0 {
				t.Errorf("Once() = %+v", s)
			}
			d.want(t, c.fate)
			d.b.operate(t, func(o *operate.Operations) error {
				for i, name := range d.names {
					told, err := d.b.book(t).Deliveries(t.Context(), "sea", name)
					if err != nil || c.fate[i] == 'a' && len(told) > 0 {
						t.Errorf("the world was told of %s, which is on a grid that did not stand: %+v, %v", name, told, err)
					}
				}
				return nil
			})
			if s := d.b.once(t); s != (work.Summary{}) {
				t.Errorf("a second pass did %+v, want nothing", s)
			}
		})
	}
}

// A backfill looks further ahead than the first vote does.
func TestABackfillMakesNoProductOnAGridThatDoesNotStand(t *testing.T) {
	d := newDays(t)
	d.b.cfg.Datasets[0].Fill.FutureDays = 8
	d.deliver(t, "ooogggg")
	if _, err := d.b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{Backfill: true}); err != nil {
		t.Fatal(err)
	}
	d.b.once(t)
	d.want(t, "aaapppp")
	d.b.operate(t, func(o *operate.Operations) error {
		for _, name := range d.names[:3] {
			told, err := d.b.book(t).Deliveries(t.Context(), "sea", name)
			if err != nil || len(told) > 0 {
				t.Errorf("the world was told of %s: %+v, %v", name, told, err)
			}
		}
		return nil
	})
}

// Every pass is a new daemon, so the vote must go on after a restart.
func TestGranulesThatComeOneByOneChangeTheGridWhenMostHaveAnother(t *testing.T) {
	oneByOne(t)
	d := newDays(t)
	for _, step := range []struct{ comes, fate string }{
		{"o", "p"},    // filled at once
		{"g", "pa"},   // a tie
		{"g", "app"},  // outvoted: the first is retracted, the second taken up again
		{"o", "appa"}, // two and two
		{"ggg", "appappp"},
		{"ooooo", "appapppaaaaa"}, // five granules have settled the grid
	} {
		d.deliver(t, step.comes)
		d.b.once(t)
		d.want(t, step.fate)
		d.b.once(t) // a restart changes nothing
		d.want(t, step.fate)
	}
	s := d.grid(t)
	if !s.Settled || s.Agree != gridpin.SettledVotes || len(s.Others) != 1 || s.Others[0].Granules != 7 || len(s.Changes) != 2 {
		t.Errorf("the grid is %+v", s)
	}
	if want := "2 of the first 3 granules have it"; s.Why != want {
		t.Errorf("it is that one because %q, want %q", s.Why, want)
	}
	d.b.operate(t, func(o *operate.Operations) error {
		aside, err := o.Quarantine(t.Context(), "sea")
		if len(aside) != 7 || !strings.Contains(aside[0].Reason, "lacuna grid reset --dataset sea") || aside[0].File == "" {
			t.Errorf("set aside: %+v", aside)
		}
		stories, storyErr := o.Why(t.Context(), d.names[0], "")
		if storyErr != nil || !strings.Contains(fmt.Sprint(stories), s.Why) {
			t.Errorf("why of the first: %+v, %v", stories, storyErr)
		}
		return err
	})
	if said := journalOfGrids(t, d.b); len(said) != 2 || said[1].Why != s.Why || said[1].Fingerprint != s.Grid {
		t.Errorf("the journal says of the grid: %+v", said)
	}
}

func journalOfGrids(t *testing.T, b *bench) []ledger.Fact {
	t.Helper()
	var all []ledger.Fact
	for f, err := range ledger.Journal(b.cfg.state().Ledger()) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "" {
			all = append(all, f)
		}
	}
	return all
}

// votesOnly is a ledger that takes votes and fails at the next step.
type votesOnly struct {
	*ledger.Ledger
	kill func()
}

func (v votesOnly) Place(ctx context.Context, _ int64, _ ledger.Placement, _ time.Time) (int, error) {
	v.kill()
	return 0, ctx.Err()
}

// The vote that changes the grid is one transaction; if the process is killed right
// after it, the next one does the rest.
func TestAKillBehindTheDecidingVoteLosesNothing(t *testing.T) {
	oneByOne(t)
	d := newDays(t)
	d.deliver(t, "o")
	d.b.once(t)
	d.deliver(t, "g")
	d.b.once(t)
	d.deliver(t, "g")
	daemon := d.b.daemon(t)
	if _, err := daemon.Station().Fetch(t.Context(), operate.Fetch{}); err != nil {
		t.Fatal(err)
	}
	book, err := ledger.Open(t.Context(), d.b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	w := work.New(d.b.cfg.Datasets[0].work(), d.b.cfg.work(), work.Parts{
		Books: votesOnly{book, kill}, Reader: daemon.reader, Queue: outbox.Queue{}, Now: time.Now, Log: daemon.log,
	})
	if _, err := w.WorkOff(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("WorkOff() = %v, want it broken off", err)
	}
	if grid, known, err := book.Grid(t.Context(), "sea"); err != nil || !known || !strings.HasPrefix(grid.Fingerprint, "24") {
		t.Fatalf("grid %+v, %v: the vote was to decide", grid, err)
	}
	if err := book.Close(); err != nil { // a kill leaves the ledger like this
		t.Fatal(err)
	}
	d.b.once(t)
	d.want(t, "app")
}

func TestAResetGridIsChosenAnewAndItsReasonIsInTheJournal(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprintf("running %v", running), func(t *testing.T) {
			d := newDays(t)
			d.deliver(t, "ggggg")
			d.b.once(t)
			d.deliver(t, "oo") // the producer has changed its grid
			d.b.once(t)
			d.want(t, "pppppaa")
			if running {
				daemon := d.b.daemon(t)
				stop := start(t, daemon)
				defer stop()
				until(t, "the daemon runs", func() bool { return daemon.Addr() != "" })
			}
			d.b.operate(t, func(o *operate.Operations) error {
				if _, err := o.ResetGrid(t.Context(), "sea", " "); err == nil {
					t.Error("a reset without a reason was taken")
				}
				done, err := o.ResetGrid(t.Context(), "", "the producer went to 30 rows")
				if done.Again != 2 || done.Grid == "" {
					t.Errorf("ResetGrid() = %+v", done)
				}
				return err
			})
			if running {
				until(t, "the days on the new grid are taken up", func() bool { return d.fate(t) == "ppppppp" })
				return // the journal is written when it stops
			}
			d.b.once(t)
			d.want(t, "ppppppp") // products of the old grid stay
			said := journalOfGrids(t, d.b)
			if len(said) != 3 || string(said[1].Grid) != "null" || said[1].Why != "the producer went to 30 rows" || said[2].Fingerprint != d.grid(t).Grid {
				t.Errorf("the journal says of the grid: %+v", said)
			}
			d.deliver(t, "og")
			d.b.once(t)
			d.want(t, "ppppppppa")
		})
	}
}

// A granule whose file is gone is logged once and stays set aside.
func TestAResetPassesOverAGranuleWhoseFileIsGone(t *testing.T) {
	oneByOne(t)
	d := newDays(t)
	d.deliver(t, "gggggoo")
	d.b.once(t)
	files, err := filepath.Glob(filepath.Join(d.b.cfg.state().Quarantine(), "sea", "*_o.nc"))
	if err != nil || len(files) != 2 {
		t.Fatalf("set aside: %v, %v", files, err)
	}
	slices.Sort(files)
	rows, err := d.b.book(t).Granules(t.Context(), ledger.GranuleQuery{State: ledger.Quarantined})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range rows {
		if strings.HasSuffix(files[0], filepath.Base(g.Name)) {
			if err := errors.Join(os.Remove(files[0]), os.Remove(g.SpoolPath)); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.b.operate(t, func(o *operate.Operations) error {
		_, err := o.ResetGrid(t.Context(), "sea", "a test")
		return err
	})
	d.b.once(t)
	d.want(t, "pppppap")
	if n := strings.Count(d.b.log.String(), "granule stays set aside"); n != 1 {
		t.Errorf("it was said %d times, want once", n)
	}
}

func TestALedgerThatIsMadeAnewKnowsTheGrid(t *testing.T) {
	oneByOne(t)
	d := newDays(t)
	d.deliver(t, "gogogggoo")
	d.b.once(t)
	d.want(t, "papapppaa")
	before := d.grid(t)
	if _, err := d.b.daemon(t).Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.b.once(t) // the quarantined granules are read again, and set aside again
	d.want(t, "papapppaa")
	after := d.grid(t)
	after.Changes, before.Changes = nil, nil
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the grid was %+v, and is %+v", before, after)
	}
}
