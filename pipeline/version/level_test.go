package version

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/field"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/skill"
)

// levelDay is a day of 2024.
func levelDay(n int) time.Time { return time.Date(2024, 1, n, 12, 0, 0, 0, time.UTC) }

// ruled returns a ruling for a challenger that errs by some on the days before the
// tenth and by some since, where the champion errs by one. Negative: by that on the
// average, now more than the champion and now less.
func ruled(before, since float64, days int) Ruling {
	side := func(before, since float64) Side {
		var s Side
		for n := 1; n <= 9+days; n++ {
			sum := before
			if n >= 10 {
				sum = math.Abs(since) + 0.01*float64(n%2)
				if since < 0 {
					sum += 0.4*float64(n%2) - 0.2
				}
			}
			s.Verdict.Losses.Squared = append(s.Verdict.Losses.Squared, skill.Loss{Day: levelDay(n), Sum: 50 * sum, Pixels: 50})
		}
		return s
	}
	champion := side(1, 1)
	return Ruling{Challenger: side(before, since), Champion: &champion, Interpolation: &Side{}, Decision: skill.Decision{Promote: true}}
}

func TestNobodyIsPromotedForALevelThatTheDaysSinceDoNotShow(t *testing.T) {
	change := []samples.Level{{After: samples.DateOf(levelDay(9)), Since: samples.DateOf(levelDay(10)), By: -0.8}}
	for name, c := range map[string]struct {
		ruling         Ruling
		levels, others []samples.Level
		promote        bool
		unjudged       bool
		want           string
	}{
		"better since":              {ruled(0.8, 0.9, 5), change, nil, true, false, "by -0.8 on 2024-01-10: the days before are judged as if they had the level of now; on those since it has 10 % less error than the champion on 5 days"},
		"worse since":               {ruled(0.8, 1.1, 5), change, nil, false, false, "10 % more error"},
		"worse since by chance":     {ruled(0.8, -1.1, 5), change, nil, true, false, "more error"},
		"too few days since":        {ruled(0.8, 0.5, 3), change, nil, false, true, "of the days since 3 can judge"},
		"no change":                 {ruled(0.8, 1.1, 5), nil, nil, true, false, ""},
		"only the champion sees it": {ruled(0.8, 0.8, 5), nil, change, false, false, "the champion knows"},
	} {
		Gate{}.judgeLevels(&c.ruling, c.levels, c.others)
		d := c.ruling.Decision
		if text := strings.Join(d.Reasons, "; "); d.Promote != c.promote || d.Unjudged != c.unjudged || !strings.Contains(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s: %+v, want %v for %q", name, d, c.promote, c.want)
		}
	}
}

// changedSea returns the days of a sea whose sensor reads less from day 150 on.
func changedSea(t *testing.T) samples.Series {
	t.Helper()
	world, err := simulate.New(simulate.Config{
		Product: "blk-chl", Height: 16, Width: 24, Days: 210, Seed: 5, DayBias: 0.1, Change: simulate.Change{Day: 150, Bias: -0.8},
	})
	if err != nil {
		t.Fatal(err)
	}
	fields := make([]field.Field, world.Days())
	for d := range fields {
		fields[d] = world.Day(d).Seen
	}
	s, err := samples.New(fields, world.Sea(), field.Transform{Log10: true, Floor: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// After a change of sensor the mean map of a fine-tune is that of the new one, old
// days are judged at its level, and the version says so. Its own fine-tunes know of it.
func TestAFineTuneTakesTheLevelOfThePresent(t *testing.T) {
	backend, all := enginetest.Open(t), changedSea(t)
	before := all
	before.Days = slices.Clone(all.Days[:slices.IndexFunc(all.Days, func(d samples.Day) bool {
		return !d.Time.Before(all.Days[0].Time.AddDate(0, 0, 148))
	})])
	s := shortSettings()
	s.Split = samples.SplitConfig{HeldOut: 0.25, GapDays: 4, Blocks: 2}
	s.Strategy, s.Members.Steps, s.Reliability.Steps = "empirical", 0, 0
	s.Imputer.Steps, s.Judging.Overlays, s.Judging.Choosing = 4, 40, 20 // enough for a verdict, whatever it is
	made := func(days samples.Series, parent Parts, calendars []samples.Calendar) Outcome {
		t.Helper()
		q := Request{Series: []samples.Series{days}, Settings: s, Backend: backend, Parent: parent, Champion: parent, Calendars: calendars}
		out, err := Make(t.Context(), q, Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := made(before, nil, nil)
	s.Imputer.LearningRate = 1e-5 // learns next to nothing
	tuned := made(all, first.Parts, first.Calendars)
	old, now := scalingIn(t, first.Parts), scalingIn(t, tuned.Parts)
	if len(old.Levels) != 0 || len(now.Levels) != 1 || math.Abs(now.Levels[0].By+0.8) > 0.2 {
		t.Fatalf("changes of level: %v before, %v after, want one by -0.8", old.Levels, now.Levels)
	}
	moved := 0.0
	for i := range now.Mean {
		moved += float64(now.Mean[i]-old.Mean[i]) / float64(len(now.Mean))
	}
	if math.Abs(moved+0.8) > 0.25 || now.Std > 1.3*old.Std {
		t.Errorf("the mean map moves by %.2f and the spread goes from %.2f to %.2f, want -0.8 and no wider", moved, old.Std, now.Std)
	}
	if text := strings.Join(tuned.Decision.Reasons, "; "); !strings.Contains(text, "the level of the data changed by -0.") {
		t.Errorf("the reasons do not say it: %s", text)
	}
	for _, date := range tuned.Days[0].Judge {
		if l := now.Levels[0]; date > l.After && date < l.Since {
			t.Errorf("%v judges, and may be of either level", date)
		}
	}
	was, err := weightsOf(first.Parts[PartImputer])
	if err != nil {
		t.Fatal(err)
	}
	if is, err := weightsOf(tuned.Parts[PartImputer]); err != nil || !slices.Equal(is, was) {
		t.Errorf("a network that learned nothing is another than the parent's: %v", err)
	}
	// Without its newest days nothing shows the change, but the parent knows.
	short := all
	short.Days = all.Days[:len(before.Days)+4]
	if _, levels := (Request{Series: []samples.Series{short}, Settings: s, Parent: tuned.Parts, Calendars: first.Calendars}).atPresent(); !slices.Equal(levels, now.Levels) {
		t.Errorf("the next one knows %v, want %v", levels, now.Levels)
	}
	q := Request{Series: []samples.Series{short}, Champion: tuned.Parts}
	if unknown := unknownLevels(q, nil); !slices.Equal(unknown, now.Levels) {
		t.Errorf("a training that does not see it is told of %v", unknown)
	}
}

func scalingIn(t *testing.T, p Parts) parts.Scaling {
	t.Helper()
	var s parts.Scaling
	if err := json.Unmarshal(p[PartScaling], &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// The exam after a change has the days before it at the level of now: a champion of
// before does worse there, by as much as it will on the days to come.
func TestAChampionOfBeforeIsJudgedAtTheLevelOfNow(t *testing.T) {
	all := changedSea(t)
	q := Request{Series: []samples.Series{all}, Settings: shortSettings()}
	q.Settings.Split = samples.SplitConfig{HeldOut: 0.25, GapDays: 4, Blocks: 2}
	moved, levels := q.atPresent()
	if len(levels) != 1 {
		t.Fatalf("changes of level: %v", levels)
	}
	for _, c := range []struct {
		request Request
		alike   bool
	}{{moved, true}, {q, false}} {
		split, err := c.request.split()
		if err != nil {
			t.Fatal(err)
		}
		overlays, err := split.Judge.Overlays(samples.DefaultOverlays(16))
		if err != nil {
			t.Fatal(err)
		}
		sums, counts := map[bool]float64{}, map[bool]int{}
		for _, o := range overlays {
			since := samples.DateOf(o.Time) >= levels[0].Since
			for i, v := range o.Values {
				if o.Scored[i] {
					sums[since] += float64(v) * split.Judge.Scaling().Std
					counts[since]++
				}
			}
		}
		step := sums[true]/float64(counts[true]) - sums[false]/float64(counts[false])
		if alike := math.Abs(step) < 0.4; alike != c.alike {
			t.Errorf("truths since the change lie %.2f from those before, on %d and %d cells; alike: %v", step, counts[true], counts[false], c.alike)
		}
	}
}
