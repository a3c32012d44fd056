package year

import (
	"testing"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/engine/enginetest"
)

// A year of three weeks of forty days, the length in which a calendar has days for
// every use: the sensor changes after the first training, and both fine-tunes know
// the new one. No version knows a day of the weeks that it is judged on, and no
// promotion makes errors larger. 'lacuna lab year' is the year in full.
func TestAShortYearHasNoHarmfulPromotion(t *testing.T) {
	if testing.Short() {
		t.Skip("trains three times")
	}
	c := DefaultConfig()
	c.Weeks, c.WeekDays, c.Steps, c.TuneSteps = 3, 40, 60, 20
	c.Sea.Change.Day, c.Sea.DayBias = c.FirstDays, 0.3
	folder := t.TempDir()
	r, err := Run(t.Context(), c, folder, enginetest.Open(t), func(w Tuned) { t.Log(w) })
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Text())
	series, err := seriesOf(c)
	if err != nil {
		t.Fatal(err)
	}
	y := &yearRun{Config: c, series: series, store: modelstore.New(folder+"/store", time.Now)}
	champion := ""
	for week, tuned := range r.Tuned {
		v, err := y.store.Peek(tuned.Version)
		if err != nil {
			t.Fatal(err)
		}
		begins := y.week(week).Format(time.DateOnly)
		for _, days := range [][]string{v.Card.Split.Learn, v.Card.Split.Choose, v.Card.Split.Judge} {
			if len(days) == 0 || days[len(days)-1] >= begins {
				t.Errorf("week %d begins on %s, and its version knows %v", week, begins, days)
			}
		}
		if v.Card.Parent != champion || (tuned.Learned > 0) != (week > 0) {
			t.Errorf("week %d: %+v, a child of %q, want one of %q", week, tuned, v.Card.Parent, champion)
		}
		if tuned.Promoted {
			champion = tuned.Version
		}
		if r.Weeks[week].Champion != champion {
			t.Errorf("week %d is served by %s, want %s", week, r.Weeks[week].Champion, champion)
		}
	}
	if !r.Tuned[0].Promoted || r.Harmful() > 0 {
		t.Errorf("the first model: %+v, harmful promotions: %d", r.Tuned[0], r.Harmful())
	}
}
