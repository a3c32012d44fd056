package samples_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

// daily returns days without values, from first to before end, in days since
// the start.
func daily(first, end int) []samples.Day {
	var days []samples.Day
	for d := first; d < end; d++ {
		days = append(days, samples.Day{Time: start.AddDate(0, 0, d)})
	}
	return days
}

// counts returns the number of days of each role.
func counts(c samples.Calendar, days []samples.Day) map[samples.Role]int {
	n := map[samples.Role]int{}
	for _, d := range days {
		n[c.Role(samples.DateOf(d.Time))]++
	}
	return n
}

// The days that were held out before there were calendars judge: roles of the
// former rule, written down here, so that published figures stay comparable.
func formerlyHeldOut(days []samples.Day, heldOut float64, gap, mostBlocks int) []bool {
	out := make([]bool, len(days))
	number := func(i int) int { return int(samples.DateOf(days[i].Time)) }
	for first := 0; first < len(days); {
		last := first
		for last+1 < len(days) && number(last+1)-number(last) <= max(gap, 1) {
			last++
		}
		n := number(last) + 1 - number(first)
		blocks := mostBlocks
		for blocks > 1 && n/blocks < 5*gap {
			blocks--
		}
		for i := first; i <= last; i++ {
			at := number(i) - number(first)
			block := at * blocks / n
			from := (block*n + blocks - 1) / blocks
			length := ((block+1)*n+blocks-1)/blocks - from
			out[i] = at-from >= length-max(int(heldOut*float64(length)+0.5), 1)
		}
		first = last + 1
	}
	return out
}

func TestFormerHeldOutDaysAreTheDaysThatJudge(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		days := daily(0, 20+r.IntN(500))
		missing := r.Float64() * 0.5
		days = slices.DeleteFunc(days, func(samples.Day) bool { return r.Float64() < missing })
		if hole := r.IntN(len(days)); r.IntN(2) == 0 {
			days = append(days[:hole], days[min(len(days), hole+30):]...)
		}
		if len(days) < 3 {
			continue
		}
		cfg := samples.SplitConfig{HeldOut: 0.1 + 0.5*r.Float64(), GapDays: 1 + r.IntN(14), Blocks: 1 + r.IntN(3)}
		c := samples.Extend(samples.Calendar{}, days, cfg)
		gap := c.GapDays // that of the step, where half of the days are missing
		for i, held := range formerlyHeldOut(days, cfg.HeldOut, gap, cfg.Blocks) {
			if role := c.Role(samples.DateOf(days[i].Time)); (role == samples.Judge) != held {
				t.Fatalf("%+v, %d days: day %d was held out: %v, and its role is %q", cfg, len(days), i, held, role)
			}
		}
		checkGaps(t, c)
	}
}

// checkGaps holds the distances between days of different roles.
func checkGaps(t *testing.T, c samples.Calendar) {
	t.Helper()
	for k, a := range c.Intervals {
		for _, b := range c.Intervals[k+1:] {
			between := int(b.From - a.To - 1)
			least := 0
			switch {
			case a.Role == b.Role:
			case a.Role == samples.Choose || b.Role == samples.Choose:
				least = (c.GapDays + 1) / 2
			default:
				least = c.GapDays
			}
			if between < least {
				t.Fatalf("%d days between %+v and %+v, must be %d", between, a, b, least)
			}
		}
	}
}

func TestNinetyDaysHaveDaysOfEveryRole(t *testing.T) {
	days := daily(0, 90)
	c := samples.Extend(samples.Calendar{}, days, samples.DefaultSplit())
	n := counts(c, days)
	if n[samples.Learn] < 43 || n[samples.Choose] < 8 || n[samples.Judge] < 22 {
		t.Errorf("roles of 90 days: %v", n)
	}
	checkGaps(t, c)
}

// Each date has the same role however the days of a dataset come in, and keeps
// it. Splitting afresh each time, as was done before, fails here.
func TestARoleDoesNotDependOnWhenDaysComeIn(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		first := 60 + r.IntN(300)
		step := 1
		if r.IntN(4) == 0 {
			step = 8
		}
		all := daily(-200, first+400)
		for i := range all {
			all[i].Time = start.AddDate(0, 0, (i-200)*step)
		}
		begin := 200 + r.IntN(40)
		cfg := samples.SplitConfig{HeldOut: 0.25, GapDays: r.IntN(14), Blocks: 1 + r.IntN(2)}
		made := samples.Extend(samples.Calendar{}, all[begin:begin+first], cfg)
		atOnce := samples.Extend(made, all, cfg)

		known := map[samples.Date]samples.Role{}
		for _, d := range all[begin : begin+first] {
			known[samples.DateOf(d.Time)] = made.Role(samples.DateOf(d.Time))
		}
		grown := made
		rest := slices.Concat(all[:begin], all[begin+first:])
		r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		for len(rest) > 0 {
			some := rest[:min(1+r.IntN(60), len(rest))]
			rest = rest[len(some):]
			slices.SortFunc(some, func(a, b samples.Day) int { return a.Time.Compare(b.Time) })
			before := grown
			grown = samples.Extend(grown, some, samples.SplitConfig{HeldOut: 0.5, GapDays: 3, Blocks: 1}) // matters no more
			if !grown.Extends(before) {
				t.Fatal("an interval was changed")
			}
			for _, d := range some {
				known[samples.DateOf(d.Time)] = grown.Role(samples.DateOf(d.Time))
			}
		}
		if !reflect.DeepEqual(grown, atOnce) {
			t.Fatal("the calendar depends on how days came in")
		}
		for date, role := range known {
			if now := grown.Role(date); now != role {
				t.Fatalf("%v was for %q and is for %q", date, role, now)
			}
		}
		checkGaps(t, grown)
	}
}

func TestCyclesHaveDaysOfEveryRole(t *testing.T) {
	for _, heldOut := range []float64{0.05, 0.25, 0.9} {
		cfg := samples.SplitConfig{HeldOut: heldOut, GapDays: 12, Blocks: 2}
		c := samples.Extend(samples.Calendar{}, daily(0, 150), cfg)
		later := daily(150, 150+3000)
		c = samples.Extend(c, later, cfg)
		if n := counts(c, later); n[samples.Learn] < 100 || n[samples.Choose] < 20 || n[samples.Judge] < 100 {
			t.Errorf("held out %g: roles of the days behind the first are %v", heldOut, n)
		}
	}
}

func TestLateDaysAreLearnedFromWhereNothingIsJudged(t *testing.T) {
	days := slices.Concat(daily(0, 100), daily(200, 300))
	c := samples.Extend(samples.Calendar{}, days, samples.DefaultSplit())
	role := func(d int) samples.Role { return c.Role(samples.DateOf(start.AddDate(0, 0, d))) }
	for d, want := range map[int]samples.Role{-300: samples.Learn, 99: samples.Judge, 111: samples.Nothing, 112: samples.Learn, 199: samples.Learn, 299: samples.Judge, 300: samples.Nothing} {
		if got := role(d); got != want {
			t.Errorf("day %d is for %q, want %q", d, got, want)
		}
	}
}

func TestACalendarIsWrittenAsDates(t *testing.T) {
	c := samples.Extend(samples.Calendar{}, daily(-400, -200), samples.DefaultSplit())
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back samples.Calendar
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, c) || back.Validate() != nil {
		t.Errorf("%s came back as %+v, %v", data, back, err)
	}
	var first struct{ Intervals []struct{ From string } }
	if err := json.Unmarshal(data, &first); err != nil || first.Intervals[0].From != start.AddDate(0, 0, -400).Format(time.DateOnly) {
		t.Errorf("the first day is written as %+v", first.Intervals[:1])
	}
	for name, edit := range map[string]func(*samples.Calendar){
		"a role":   func(c *samples.Calendar) { c.Intervals[0].Role = "test" },
		"an order": func(c *samples.Calendar) { c.Intervals[1].From -= 300 },
		"a cycle":  func(c *samples.Calendar) { c.Cycle = nil },
		"endless":  func(c *samples.Calendar) { c.Cycle[0].Days = -1000 },
	} {
		bad := samples.Calendar{GapDays: c.GapDays, Cycle: slices.Clone(c.Cycle), Intervals: slices.Clone(c.Intervals)}
		if edit(&bad); bad.Validate() == nil {
			t.Errorf("a calendar with another %s passes", name)
		}
	}
}

// Around a day that chooses no day that judges is visible, or what is chosen
// would depend on values that judge.
func TestDaysThatJudgeAreInvisibleToThoseThatChoose(t *testing.T) {
	s, _, _ := split(t, 200, samples.DefaultSplit())
	c := samples.Extend(samples.Calendar{}, s.Days, samples.DefaultSplit())
	sides, err := samples.Assign([]samples.Series{s}, []samples.Calendar{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := sides.Days[0]; sides.Train.Days() != len(n.Learn) || sides.Choose.Targets() != len(n.Choose) || sides.Judge.Targets() != len(n.Judge) || len(n.Choose) < 10 {
		t.Fatalf("sides of %d, %d and %d days are told as %d, %d and %d", sides.Train.Days(), sides.Choose.Targets(), sides.Judge.Targets(), len(n.Learn), len(n.Choose), len(n.Judge))
	}
	for day := range sides.Choose.Days() {
		if date := samples.DateOf(sides.Choose.Time(day)); c.Role(date) == samples.Judge {
			t.Errorf("%v judges and is visible to days that choose", date)
		}
	}
	for _, ref := range sides.Choose.Refs(8, 8, 1) {
		if date := samples.DateOf(sides.Choose.Time(ref.Day)); c.Role(date) != samples.Choose {
			t.Errorf("%v chooses and is for %q", date, c.Role(date))
		}
	}
	for _, ref := range sides.Judge.Refs(8, 8, 1) {
		if date := samples.DateOf(sides.Judge.Time(ref.Day)); c.Role(date) != samples.Judge {
			t.Errorf("%v judges and is for %q", date, c.Role(date))
		}
	}
	if sides.Judge.Days() != 200 {
		t.Errorf("%d days are visible to those that judge, want all", sides.Judge.Days())
	}
}

func TestDaysThatAnAncestorLearnedFromNeitherChooseNorJudge(t *testing.T) {
	s, _, _ := split(t, 200, samples.DefaultSplit())
	all := []samples.Series{s}
	c := []samples.Calendar{samples.Extend(samples.Calendar{}, s.Days, samples.DefaultSplit())}
	whole, err := samples.Assign(all, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	days := whole.Days[0]
	here, elsewhere := samples.BoxOf(s.Grid), samples.Box{South: -10, North: -5, West: 10, East: 11}
	learned := slices.Concat(days.Learn[:3], days.Choose[:2], days.Judge[5:9])
	slices.Sort(learned)
	chosen := slices.Concat(days.Choose[3:5], days.Judge[12:13])
	slices.Sort(chosen)
	got, err := samples.Assign(all, c, []samples.Seen{{Box: &here, Learned: learned, Chosen: chosen}, {Box: &elsewhere, Until: days.Judge[len(days.Judge)-1]}})
	if err != nil {
		t.Fatal(err)
	}
	want := samples.Assignment{Learn: days.Learn, Choose: days.Choose[2:], Seen: slices.Concat(days.Choose[:2], days.Judge[5:9], days.Judge[12:13])}
	want.Judge = slices.Concat(days.Judge[:5], days.Judge[9:12], days.Judge[13:])
	slices.Sort(want.Seen)
	if !reflect.DeepEqual(got.Days[0], want) {
		t.Errorf("days are used as %v\nwant %v", got.Days[0], want)
	}
	if got.Train.Scaling().Std != whole.Train.Scaling().Std {
		t.Error("a day that was left out is learned from instead")
	}
	_, err = samples.Assign(all, c, []samples.Seen{{Until: days.Judge[len(days.Judge)-1]}})
	if err == nil || !errors.Is(err, samples.ErrAllSeen) {
		t.Errorf("nothing is left to judge on: error %v", err)
	}
}

func TestBoxesOverlapInEitherCountOfLongitudes(t *testing.T) {
	pacific := samples.Box{South: 30, North: 50, West: -140, East: -120}
	for _, tt := range []struct {
		name string
		box  samples.Box
		want bool
	}{
		{"itself", pacific, true},
		{"counted to 360", samples.Box{South: 40, North: 60, West: 230, East: 250}, true},
		{"across the date line", samples.Box{South: 40, North: 60, West: 170, East: 225}, true},
		{"to the north", samples.Box{South: 51, North: 60, West: -140, East: -120}, false},
		{"to the east", samples.Box{South: 30, North: 50, West: 241, East: 250}, false},
	} {
		if got := pacific.Overlaps(tt.box); got != tt.want || tt.box.Overlaps(pacific) != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if b := samples.BoxOf(field.Grid{Lat: []float64{50, 40, 30}, Lon: []float64{-140, -120}}); b != pacific {
		t.Errorf("box of a grid from north to south is %+v", b)
	}
}

// The review counted, of a year that grows, the days that judge a child and that
// its parent had learned from where each of them split its days by itself.
func TestAParentKnowsNoneOfTheDaysThatJudgeItsChild(t *testing.T) {
	first := samples.Extend(samples.Calendar{}, daily(0, 365), samples.DefaultSplit())
	for more, afresh := range map[int]int{30: 3, 90: 33, 180: 68} {
		days := daily(0, 365+more)
		known := func(c samples.Calendar) (n int) {
			for _, d := range days {
				date := samples.DateOf(d.Time)
				if r := first.Role(date); c.Role(date) == samples.Judge && (r == samples.Learn || r == samples.Choose) {
					n++
				}
			}
			return n
		}
		if n := known(samples.Extend(first, days, samples.DefaultSplit())); n > 0 {
			t.Errorf("%d days more: a child is judged on %d days that its parent knows", more, n)
		}
		if n := known(samples.Extend(samples.Calendar{}, days, samples.DefaultSplit())); n != afresh {
			t.Errorf("%d days more, split afresh: %d days, the review counted %d", more, n, afresh)
		}
	}
}
