package retrain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/version"
)

// archive returns the days of a small simulated sea.
func archive(t *testing.T, days int) Data {
	t.Helper()
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 16, Width: 24, Days: days, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]field.Field, days)
	for d := range fields {
		fields[d] = world.Day(d).Seen
	}
	series, err := samples.New(fields, world.Sea(), field.Transform{Log10: true, Floor: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	return Data{Series: series, Variable: "CHL"}
}

// firstDays returns the days of d up to a number of days after its first.
func firstDays(d Data, days int) Data {
	end := d.Series.Days[0].Time.AddDate(0, 0, days)
	d.Series.Days = slices.DeleteFunc(slices.Clone(d.Series.Days), func(day samples.Day) bool { return !day.Time.Before(end) })
	return d
}

// request returns a request for a training of seconds.
func request(t *testing.T, store, from string, data ...Data) Request {
	t.Helper()
	return Request{
		Store: store, Dataset: "sea", From: from, Policy: PolicyNever, Data: data, Engine: enginetest.Open(t), Lacuna: "test",
		Options: Options{
			Size: nn.Tiny, Strategy: "empirical",
			Budget: version.Budget{Steps: 2, Batch: 4, Side: 16, MembersSteps: 0, ReliabilitySteps: 0},
		},
		Starter: func(context.Context) (*modelstore.Version, string, error) { return nil, "no starter", nil },
	}
}

// trained runs a training and returns its version.
func trained(t *testing.T, req Request) *modelstore.Version {
	t.Helper()
	if req.From != "" {
		req.Options.Size = ""
	}
	tr, err := Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var done Event
	if err := tr.Run(t.Context(), Hooks{Progress: func(version.Progress) {}, Done: func(e Event) error { done = e; return nil }}); err != nil {
		t.Fatal(err)
	}
	v, err := modelstore.New(req.Store, time.Now).Load(done.Version)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Finding M1 of the review: each training split its days afresh, so that a
// fine-tune was judged on days that its parent had learned from.
func TestNoGenerationIsJudgedOnDaysThatAnAncestorKnows(t *testing.T) {
	if testing.Short() {
		t.Skip("trains networks one after the other")
	}
	store, all := filepath.Join(t.TempDir(), "store"), archive(t, 210)
	roles := map[string]string{} // by day
	known := map[string]bool{}   // days that ancestors learned from or were chosen by
	from := ""
	for generation, days := range []int{120, 150, 210} {
		v := trained(t, request(t, store, from, firstDays(all, days)))
		split := v.Card.Split
		if len(split.Judge) < 20 || len(split.Learn) < 40 || len(split.Choose) < 8 {
			t.Fatalf("generation %d: %d days learn, %d choose, %d judge", generation, len(split.Learn), len(split.Choose), len(split.Judge))
		}
		for role, list := range map[string][]string{"learn": split.Learn, "choose": split.Choose, "judge": split.Judge} {
			for _, day := range list {
				if before, is := roles[day]; is && before != role {
					t.Errorf("generation %d: %s is for %s and was for %s", generation, day, role, before)
				}
				roles[day] = role
				known[day] = known[day] || role != "judge"
			}
		}
		for _, day := range split.Judge {
			if known[day] {
				t.Errorf("generation %d is judged on %s, which it or an ancestor learned from or chose by", generation, day)
			}
		}
		if generation > 0 && v.Card.Parent != from {
			t.Errorf("generation %d is not a child of the one before", generation)
		}
		from = v.ID
	}
	// The third knows what the first two learned from, without their cards.
	v, err := modelstore.New(store, time.Now).Load(from)
	if err != nil || len(v.Card.Split.Seen) != 1 || len(v.Card.Split.Seen[0].Learn) < 50 {
		t.Errorf("the third generation inherits %+v, %v", v.Card.Split.Seen, err)
	}
	// A table that it is a row of is not made of those days either. Split afresh, it would be.
	calendar, seen, err := Known(v.Card, all.Series, "CHL")
	if err != nil {
		t.Fatal(err)
	}
	leaks := func(c samples.Calendar, seen []samples.Seen) (n int) {
		uses, err := samples.Uses([]samples.Series{all.Series}, []samples.Calendar{samples.Extend(c, all.Series.Days, samples.DefaultSplit())}, seen)
		if err != nil {
			t.Fatal(err)
		}
		for _, day := range uses[0].Judge {
			if known[day.String()] {
				n++
			}
		}
		return n
	}
	if n := leaks(calendar, nil) + leaks(samples.Calendar{}, seen); n > 0 {
		t.Errorf("a table judges the third generation on %d days that it knows", n)
	}
	if leaks(samples.Calendar{}, nil) == 0 {
		t.Error("split afresh it knows none of the days either: this test shows nothing")
	}
}

// A parent from another store may have another calendar: what it learned from
// does not judge here.
func TestDaysOfAParentFromElsewhereAreDropped(t *testing.T) {
	if testing.Short() {
		t.Skip("trains networks one after the other")
	}
	all := archive(t, 150)
	elsewhere := request(t, filepath.Join(t.TempDir(), "elsewhere"), "", firstDays(all, 100))
	elsewhere.Dataset, elsewhere.Data[0].Variable = "other", "chl" // another spelling
	parent := trained(t, elsewhere)

	req := request(t, filepath.Join(t.TempDir(), "store"), "", all)
	req.From = imported(t, elsewhere.Store, req.Store, parent.ID)
	req.Options.Size = ""
	tr, err := Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	uses, err := samples.Uses(tr.job.Series, tr.job.Calendars, tr.job.Seen)
	if err != nil {
		t.Fatal(err)
	}
	learned, chosen := parent.Card.Split.Learn, parent.Card.Split.Choose
	for _, day := range slices.Concat(uses[0].Choose, uses[0].Judge) {
		if slices.Contains(learned, day.String()) {
			t.Errorf("%v chooses or judges, and the parent learned from it", day)
		}
	}
	for _, day := range uses[0].Judge {
		if slices.Contains(chosen, day.String()) {
			t.Errorf("%v judges, and the parent was chosen by it", day)
		}
	}
	if len(uses[0].Seen) < 10 {
		t.Errorf("%d days were dropped: this test shows nothing", len(uses[0].Seen))
	}
}

// imported moves a version from one store to another and returns its name.
func imported(t *testing.T, from, to, id string) string {
	t.Helper()
	var file bytes.Buffer
	if err := modelstore.New(from, time.Now).Export(t.Context(), id, &file); err != nil {
		t.Fatal(err)
	}
	v, err := modelstore.New(to, time.Now).Import(t.Context(), &file)
	if err != nil {
		t.Fatal(err)
	}
	return v.ID
}

// A version that was moved takes the calendar of its dataset along.
func TestTheCalendarOfADatasetIsMovedWithItsVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("trains networks one after the other")
	}
	all := archive(t, 150)
	first := request(t, filepath.Join(t.TempDir(), "store"), "", firstDays(all, 100))
	parent := trained(t, first)
	want, err := modelstore.New(first.Store, time.Now).Calendar("sea")
	if err != nil || want == nil {
		t.Fatalf("no calendar in the store: %v", err)
	}
	req := request(t, filepath.Join(t.TempDir(), "new"), "", all)
	req.From, req.Options.Size = imported(t, first.Store, req.Store, parent.ID), ""
	req.Options.Budget.GapDays = 5 // too late to matter
	tr, err := Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var before calendars
	if err := json.Unmarshal(want, &before); err != nil || !tr.job.Calendars[0].Extends(before.Seas[0].Calendar) {
		t.Errorf("calendar %+v does not go on from %s: %v", tr.job.Calendars[0], want, err)
	}
	uses, err := samples.Uses(tr.job.Series, tr.job.Calendars, tr.job.Seen)
	if err != nil || len(uses[0].Seen) > 0 {
		t.Errorf("with the same calendar %d days were dropped, %v", len(uses[0].Seen), err)
	}
}

// Of a card that is older than lists of days only the end of its data is known.
func TestAParentThatDoesNotSayItsDaysMayKnowAllUpToTheEndOfItsData(t *testing.T) {
	if testing.Short() {
		t.Skip("trains networks one after the other")
	}
	all := archive(t, 150)
	first := request(t, filepath.Join(t.TempDir(), "store"), "", firstDays(all, 100))
	v := trained(t, first)
	for _, tt := range []struct {
		to    time.Time
		fails bool
	}{{all.Series.Days[99].Time, false}, {all.Series.Days[len(all.Series.Days)-1].Time, true}} {
		card := v.Card
		card.Split = modelstore.Split{TrainDays: 60, TestDays: 25}
		card.Data.To = tt.to
		store := modelstore.New(filepath.Join(t.TempDir(), "old"), time.Now)
		imputer, err := v.ReadFile(modelstore.ImputerFile)
		if err != nil {
			t.Fatal(err)
		}
		card.Calibration, card.Networks = modelstore.Calibration{}, nil
		old, err := store.Write(t.Context(), card, map[string]io.Reader{modelstore.ImputerFile: bytes.NewReader(imputer)})
		if err != nil {
			t.Fatal(err)
		}
		req := request(t, store.Dir(), old.ID, all)
		req.Options.Size = ""
		tr, err := Prepare(t.Context(), req)
		if tt.fails {
			if !errors.Is(err, samples.ErrAllSeen) || !strings.Contains(err.Error(), "train without it") {
				t.Errorf("nothing is left to judge on: error %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		uses, err := samples.Uses(tr.job.Series, tr.job.Calendars, tr.job.Seen)
		if err != nil || len(uses[0].Seen) == 0 || uses[0].Judge[0] <= samples.DateOf(tt.to) {
			t.Errorf("days that judge %v, dropped %v, %v", uses[0].Judge, uses[0].Seen, err)
		}
	}
}

// Two first trainings of a dataset at the same time: the second to begin uses
// the calendar of the first, or stops before it has learned anything.
func TestDaysAreAssignedOnceByTwoTrainingsAtATime(t *testing.T) {
	all := archive(t, 150)
	store := filepath.Join(t.TempDir(), "store")
	early, err := Prepare(t.Context(), request(t, store, "", firstDays(all, 100)))
	if err != nil {
		t.Fatal(err)
	}
	late, err := Prepare(t.Context(), request(t, store, "", all))
	if err != nil {
		t.Fatal(err)
	}
	if err := early.keepCalendar(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := late.keepCalendar(t.Context()); !errors.Is(err, errOtherCalendar) {
		t.Errorf("another calendar was written over the first: %v", err)
	}
	again, err := Prepare(t.Context(), request(t, store, "", all))
	if err != nil || again.keepCalendar(t.Context()) != nil || !again.job.Calendars[0].Extends(early.job.Calendars[0]) {
		t.Errorf("the same command does not use the calendar that is there: %v", err)
	}
	if err := early.keepCalendar(t.Context()); err != nil { // resumed after the other extended it
		t.Errorf("a calendar that was extended since: %v", err)
	}
}

// Two grids of one place share a calendar, or a day of the one would judge and
// of the other be learned from.
func TestSeriesOfOnePlaceShareACalendar(t *testing.T) {
	grid := func(west float64) field.Grid {
		return field.Grid{Lat: []float64{40, 41}, Lon: []float64{west, west + 2}}
	}
	days := func(first, n int) (out []samples.Day) {
		for d := range n {
			out = append(out, samples.Day{Time: time.Date(2024, 1, 1+first+d, 0, 0, 0, 0, time.UTC)})
		}
		return out
	}
	series := []samples.Series{{Grid: grid(10), Days: days(0, 100)}, {Grid: grid(20), Days: days(0, 80)}, {Grid: grid(11), Days: days(60, 90)}}
	var c calendars
	got := c.assign(series, samples.DefaultSplit())
	if len(c.Seas) != 2 || !got[0].Extends(got[2]) || got[0].Extends(got[1]) {
		t.Fatalf("%d seas with the calendars %+v", len(c.Seas), got)
	}
	var together calendars
	whole := together.assign([]samples.Series{{Grid: grid(10), Days: days(0, 150)}}, samples.DefaultSplit())
	if !whole[0].Extends(got[0]) {
		t.Errorf("the calendar is %+v, of all days together %+v", got[0], whole[0])
	}
}

func TestVariablesOfOneQuantityAreAlike(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"CHL", "chl", true}, {"", "SST", true}, {"CHL", "chlor_a", true}, {"CHL", "sst", false}} {
		if got := sameQuantity(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
