package operate

import (
	"strings"
	"testing"
	"time"

	"lacuna/ledger"
)

// A product begins when its granule is there and the one before is stored, so that
// neither a wait in the queue nor an idle hour counts as work.
func TestThePaceIsThatOfWorkAndNotOfWaiting(t *testing.T) {
	at := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	turn := func(fetched, stored float64) ledger.Turn {
		return ledger.Turn{Fetched: at.Add(time.Duration(fetched * float64(time.Second))), Stored: at.Add(time.Duration(stored * float64(time.Second)))}
	}
	tests := []struct {
		name  string
		turns []ledger.Turn
		since time.Time
		want  Pace
	}{
		{name: "none was made"},
		{name: "the first has nothing before it", turns: []ledger.Turn{turn(0, 9)}},
		{name: "they wait for one another", turns: []ledger.Turn{turn(0, 2), turn(0, 4), turn(0, 6), turn(0, 8)}, want: Pace{Each: 2 * time.Second, Measured: 3}},
		{name: "one a day", turns: []ledger.Turn{turn(0, 3), turn(86400, 86403), turn(2*86400, 2*86400+3)}, want: Pace{Each: 3 * time.Second, Measured: 2}},
		{name: "an hour of standstill", turns: []ledger.Turn{turn(0, 2), turn(0, 4), turn(0, 3604), turn(0, 3606)}, want: Pace{Each: 2 * time.Second, Measured: 3}},
		{name: "three workers that finish together", turns: together(turn, 3, 16), want: Pace{Each: 2 * time.Second, Measured: 47}},
		{
			name: "a slower model since", turns: []ledger.Turn{turn(0, 1), turn(0, 2), turn(0, 3), turn(3, 8), turn(3, 13), turn(3, 18)},
			since: at.Add(3500 * time.Millisecond), want: Pace{Each: 5 * time.Second, Measured: 3},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := paceOf(tt.turns, tt.since); got != tt.want {
				t.Errorf("paceOf() = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// together are products of workers that take as many times two seconds as there are of
// them, and finish at the same moment: one every two seconds.
func together(turn func(fetched, stored float64) ledger.Turn, workers, rounds int) (all []ledger.Turn) {
	for round := range rounds {
		for range workers {
			all = append(all, turn(0, float64(2*workers*(round+1))))
		}
	}
	return all
}

func TestAnEstimateSaysWhatItRestsOn(t *testing.T) {
	for want, e := range map[string]Estimate{
		"90 products, about 12 min: 8.2 s each, as the last 60 took": {Products: 90, Each: 8.25, Seconds: 742.5, Measured: 60},
		"3 products; how long they take is not known":                {Products: 3},
		"90 products, about 90 min at the rate of 60 an hour":        {Products: 90, Each: 60, Seconds: 5400, Measured: 60, Most: 60, ByRate: true},
	} {
		if got := e.String(); !strings.HasPrefix(got, want) {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

// A newer champion takes the place of a reprocessing under way, and keeps its days;
// nothing else does.
func TestWhatOvertakesABackfill(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2024, 5, n, 0, 0, 0, 0, time.UTC) }
	under := Backfill{Dataset: "sea", From: day(5), To: day(20), Again: true, Model: "a"}
	tests := []struct {
		name             string
		ask              Backfill
		same, takesPlace bool
	}{
		{name: "the same", ask: under, same: true},
		{name: "other days", ask: Backfill{Dataset: "sea", From: day(1), To: day(20), Again: true, Model: "a"}},
		{name: "another champion", ask: Backfill{Dataset: "sea", From: day(10), To: day(25), Again: true, Model: "b"}, takesPlace: true},
		{name: "days to fetch", ask: Backfill{Dataset: "sea", From: day(5), To: day(20)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := under.sameAs(tt.ask); got != tt.same {
				t.Errorf("sameAs() = %v", got)
			}
			if got := under.overtakenBy(tt.ask); got != tt.takesPlace {
				t.Errorf("overtakenBy() = %v", got)
			}
		})
	}
	asked := under
	asked.Asked = day(21)
	old := ledger.Granule{Recorded: day(6)}
	if asked.remade(old) {
		t.Error("a product from before the request counts as made again")
	}
	old.Why = asked.why()
	if !asked.remade(old) {
		t.Error("a clock that was set back has the product made twice")
	}
	if !asked.remade(ledger.Granule{Recorded: day(22)}) {
		t.Error("a product from after the request is made once more")
	}
}
