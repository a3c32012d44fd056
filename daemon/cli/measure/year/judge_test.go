package year

import (
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// made is a year of 20 weeks after 70 days whose sensor changes in week 10.
func made() *yearRun {
	c := Config{FirstDays: 70, Weeks: 20, WeekDays: 7}
	c.Sea.Change.Day = 70 + 7*10
	return &yearRun{Config: c, series: samples.Series{Days: []samples.Day{{Time: time.Date(2024, 4, 1, 10, 0, 0, 0, time.UTC)}}}}
}

// lossesOf returns the losses of every day of the year: per pixel what error says of
// its week.
func (y *yearRun) lossesOf(err func(week, day int) float64) []skill.Loss {
	var all []skill.Loss
	for d := range 7*y.Weeks + promotionDays {
		all = append(all, skill.Loss{Day: y.day(y.FirstDays + d).Add(10 * time.Hour), Sum: 50 * err(d/7, d), Pixels: 50})
	}
	return all
}

// What a version does on days that it may have learned from counts for nothing: one
// that has memorised them and is worse on the days to come is harmful.
func TestAPromotionIsJudgedOnTheDaysAfterIt(t *testing.T) {
	y := made()
	wobble := func(day int) float64 { return 0.01 * math.Sin(float64(day)) }
	losses := map[string][]skill.Loss{
		"old":      y.lossesOf(func(_, day int) float64 { return 0.2 + wobble(day) }),
		"memory":   y.lossesOf(func(week, day int) float64 { return map[bool]float64{true: 0, false: 0.25}[week < 5] + wobble(2*day) }),
		"better":   y.lossesOf(func(week, day int) float64 { return map[bool]float64{true: 0.4, false: 0.15}[week < 5] + wobble(2*day) }),
		"the same": y.lossesOf(func(_, day int) float64 { return 0.2 + wobble(3*day) }),
	}
	for version, harmful := range map[string]bool{"memory": true, "better": false, "the same": false} {
		p, err := y.promotion(Tuned{Week: 5, Version: version}, "old", losses)
		if err != nil {
			t.Fatal(err)
		}
		if p.Harmful() != harmful || p.Error.Samples != promotionDays {
			t.Errorf("%s: harmful %v by %+v, want %v", version, p.Harmful(), p.Error, harmful)
		}
	}
}

// The lost skill is that of the champion at the change, and what a later one does
// better on the same days was recovered.
func TestTheShareOfTheLostSkillThatIsRecovered(t *testing.T) {
	y := made()
	losses := map[string][]skill.Loss{
		"a": y.lossesOf(func(week, _ int) float64 { return map[bool]float64{true: 0.1, false: 0.5}[week < 10] }),
		"b": y.lossesOf(func(week, _ int) float64 { return map[bool]float64{true: 9, false: 0.14}[week < 10] }),
	}
	serving := make([]string, y.Weeks)
	r := Result{ChangeWeek: y.changeWeek()}
	for week := range serving {
		serving[week] = "a"
		tuned := Tuned{Week: week}
		if week >= 12 {
			tuned.Learned = week
		}
		if week >= 13 {
			serving[week] = "b"
		}
		r.Tuned = append(r.Tuned, tuned)
	}
	control := y.lossesOf(func(int, int) float64 { return 0.1 })
	r, err := y.tell(r, serving, losses, control)
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Early; e.Week != 13 || math.Abs(r.Before-0.1) > 1e-9 || math.Abs(e.Frozen-0.5) > 1e-9 || math.Abs(e.Renewed-0.14) > 1e-9 || math.Abs(e.Share()-0.9) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if got := r.Weeks[13]; got.Champion != "b" || math.Abs(got.Error-0.14) > 1e-9 || math.Abs(got.Frozen-0.5) > 1e-9 {
		t.Errorf("week 13 is %+v", got)
	}
	if text := r.Text(); !strings.Contains(text, "90 % of the lost skill recovered") {
		t.Errorf("Text() = %s", text)
	}
	if b := r.Picture().Bounds(); b.Dx() < 400 {
		t.Errorf("the picture is %v", b)
	}

	for i := range r.Tuned {
		r.Tuned[i].Learned = 0
	}
	if r.Late.Week != 20 || math.Abs(r.Late.Share()-0.9) > 1e-9 {
		t.Errorf("after the year: %+v", r.Late)
	}
	if _, err := y.tell(Result{ChangeWeek: 10, Tuned: r.Tuned}, serving, losses, control); err == nil {
		t.Error("a year whose fine-tunes never saw the new sensor tells a recovery")
	}
}
