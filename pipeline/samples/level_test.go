package samples

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

const (
	levelCols   = 8
	levelSpread = 0.37 // of the values of the sea below, about
)

// levelSea returns days of a small sea with a pattern, a season, weather that lasts
// some days, errors that a day shares and clouds. Extra is added to all values of a day.
func levelSea(seed uint64, days int, extra func(day int) float64) Series {
	grid := field.Grid{Lat: []float64{40, 40.1, 40.2, 40.3, 40.4, 40.5}}
	for c := range levelCols {
		grid.Lon = append(grid.Lon, 28+float64(c)/10)
	}
	s := Series{Grid: grid, Sea: slices.Repeat(field.Mask{true}, grid.Len())}
	rng := rand.New(rand.NewPCG(seed, 1))
	weather := 0.0
	for d := range days {
		weather = 0.8*weather + 0.06*rng.NormFloat64()
		shared := weather + 0.15*rng.NormFloat64() + 0.25*math.Sin(2*math.Pi*float64(d)/365+float64(seed)) + extra(d)
		day := Day{Time: time.Date(2024, 1, 1+d, 12, 0, 0, 0, time.UTC), Values: make([]float32, grid.Len())}
		cloud := rng.IntN(levelCols)
		for i := range day.Values {
			day.Values[i] = float32(0.4*math.Cos(float64(i)) + shared + 0.1*rng.NormFloat64())
			if i%levelCols == cloud || rng.IntN(3) == 0 {
				day.Values[i] = field.NaN()
			}
		}
		s.Days = append(s.Days, day)
	}
	return s
}

func step(at int, by float64) func(int) float64 {
	return func(day int) float64 {
		if day >= at {
			return by
		}
		return 0
	}
}

func TestAChangeOfLevelIsFoundAtItsDay(t *testing.T) {
	for seed, by := range map[uint64]float64{1: -1.2, 2: 1.2, 3: -1.2, 4: 1.2, 5: 1.5} {
		s := levelSea(seed, 260, step(180, by))
		c := Extend(Calendar{}, s.Days, SplitConfig{HeldOut: 0.25, GapDays: 4, Blocks: 6})
		levels := s.Levels(c, nil)
		if len(levels) != 1 {
			t.Errorf("seed %d: %v, want one change", seed, levels)
			continue
		}
		at := DateOf(s.Days[180].Time)
		if l := levels[0]; apart(l.Since, at) > 2 || l.After >= l.Since || math.Abs(l.By-by) > 0.25 {
			t.Errorf("seed %d: found %+v, want %.2g on %v", seed, l, by, at)
		}
		// What was found is found no second time, and stays where the days do not show it any more.
		if again := s.Levels(c, levels); !slices.Equal(again, levels) {
			t.Errorf("seed %d: %v becomes %v", seed, levels, again)
		}
		s.Days = s.Days[200:]
		if kept := s.Levels(c, levels); !slices.Equal(kept, levels) {
			t.Errorf("seed %d: %v becomes %v", seed, levels, kept)
		}
	}
}

func TestSeasonAndWeatherAreNoChangeOfLevel(t *testing.T) {
	for name, extra := range map[string]func(int) float64{
		"nothing":               func(int) float64 { return 0 },
		"a small step":          step(180, 0.5*levelSpread),
		"a bloom of five weeks": func(d int) float64 { return 2 * levelSpread * min(1, max(0, float64(d-180)/35)) },
		"a week of storm":       func(d int) float64 { return step(180, -0.8)(d) - step(187, -0.8)(d) },
		"a step of yesterday":   step(256, -0.8),
	} {
		for seed := range uint64(40) {
			if found := levelSea(seed, 260, extra).Levels(Calendar{}, nil); len(found) > 0 {
				t.Errorf("%s, seed %d: %v", name, seed, found)
			}
		}
	}
}

// A level is learned, so days that judge have no part in it.
func TestDaysThatJudgeDoNotSayWhereTheLevelChanged(t *testing.T) {
	s := levelSea(1, 260, step(180, -0.8))
	c := Extend(Calendar{}, s.Days, SplitConfig{HeldOut: 0.25, GapDays: 4, Blocks: 6})
	want := s.Levels(c, nil)
	others := s
	others.Days = slices.Clone(s.Days)
	judging := 0
	for i, d := range others.Days {
		if c.Role(DateOf(d.Time)) == Judge {
			judging++
			others.Days[i].Values = slices.Repeat([]float32{float32(i)}, len(d.Values))
		}
	}
	if got := others.Levels(c, nil); judging < 40 || len(want) != 1 || !slices.Equal(got, want) {
		t.Errorf("with other values on the %d days that judge the changes are %v, else %v", judging, got, want)
	}
}

func TestDaysAreBroughtToTheLevelOfThePresent(t *testing.T) {
	s := levelSea(1, 60, step(30, -0.8))
	day := func(n int) Date { return DateOf(s.Days[n].Time) }
	levels := []Level{{After: day(9), Since: day(10), By: 0.5}, {After: day(27), Since: day(31), By: -0.8}}
	got := s.AtPresent(levels)
	if len(got.Days) != 57 { // those between the last of before and the first of after are of either
		t.Fatalf("%d days, want 57", len(got.Days))
	}
	for _, d := range got.Days {
		n := int(DateOf(d.Time) - day(0))
		want := float32(0)
		switch {
		case n < 10:
			want = -0.3
		case n < 31:
			want = -0.8
		}
		for i, v := range d.Values {
			if before := s.Days[n].Values[i]; before == before && math.Abs(float64(v-before-want)) > 1e-6 {
				t.Fatalf("day %d is moved by %g, want %g", n, v-before, want)
			}
		}
	}
	if same := s.AtPresent(nil); &same.Days[0] != &s.Days[0] {
		t.Error("without a change the days are others")
	}
}
