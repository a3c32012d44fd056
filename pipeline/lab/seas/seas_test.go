package seas

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
	"lacuna/pipeline/skill"
)

const testSide = 16 // side of the seas of tests and of their windows, in cells

// waves returns a series of waves that travel through clouds.
func waves(name string, days int) samples.Series {
	s := samples.Series{Grid: field.Grid{Lat: make([]float64, testSide), Lon: make([]float64, testSide)}, Sea: make(field.Mask, testSide*testSide)}
	for i := range testSide {
		s.Grid.Lat[i], s.Grid.Lon[i] = 40+0.04*float64(i), 10+0.05*float64(i)
	}
	for i := range s.Sea {
		s.Sea[i] = i%testSide > 0
	}
	for day := range days {
		r := noise.New(1, "clouds", name).Rand(uint64(day))
		y, x := r.Float64()*testSide, r.Float64()*testSide
		values := make([]float32, testSide*testSide)
		for i := range values {
			row, col := float64(i/testSide), float64(i%testSide)
			values[i] = float32(math.Sin(row/4+float64(day)/6) + math.Cos(col/5) + 0.3*r.NormFloat64())
			if !s.Sea[i] || math.Hypot(row-y, col-x) < 5 {
				values[i] = field.NaN()
			}
		}
		s.Days = append(s.Days, samples.Day{Time: time.Date(2021, 1, 1+day, 12, 0, 0, 0, time.UTC), Values: values})
	}
	return s
}

// spoiled returns s with other values on days that a rule picks.
func spoiled(s samples.Series, pick func(t time.Time) bool) samples.Series {
	days := slices.Clone(s.Days)
	for i, d := range days {
		if !pick(d.Time) {
			continue
		}
		days[i].Values = slices.Clone(d.Values)
		for k := range d.Values {
			days[i].Values[k] = 100 - 3*d.Values[k]
		}
	}
	s.Days = days
	return s
}

func always(time.Time) bool { return true }

func testConfig() learn.Config {
	c := learn.DefaultConfig()
	c.Design.Size, c.Side, c.Steps, c.Batch, c.WarmupSteps, c.Workers = nn.Tiny, testSide, 3, 2, 1, 2
	return c
}

// testLab returns a lab of some seas in a new folder.
func testLab(t *testing.T, series map[string]samples.Series) *lab {
	t.Helper()
	runner, err := impute.NewRunner(enginetest.Open(t), impute.RunnerConfig{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Close)
	trainer := learn.NewTrainer(runner)
	t.Cleanup(trainer.Close)
	dir := t.TempDir()
	o := options{output: dir, work: dir, balance: balanceRoot, seeds: 1, perPatch: 1, overlays: 12, choosing: 6, workers: 2}
	l, err := newLab(o, testConfig(), seasOf(t, series), runner, trainer, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.kept.close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func seasOf(t *testing.T, series map[string]samples.Series) []*sea {
	t.Helper()
	var names []string
	for name := range series {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []*sea
	for _, name := range names {
		s, err := newSea(name, series[name])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// learnedWithout returns the network that learned from all seas but one, and its
// calibration.
func learnedWithout(t *testing.T, l *lab, leave string) ([]byte, impute.Calibration) {
	t.Helper()
	n, err := l.network(t.Context(), leave, l.teachers(leave), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.model.Close()
	c, err := l.calibration(t.Context(), l.teachers(leave), []network{n})
	if err != nil {
		t.Fatal(err)
	}
	return n.data, c
}

func TestNoDayOfTheSeaLeftOutReachesANetwork(t *testing.T) {
	plain := map[string]samples.Series{"a": waves("a", 90), "b": waves("b", 70), "c": waves("c", 24)}
	other := map[string]samples.Series{"a": plain["a"], "b": spoiled(plain["b"], always), "c": plain["c"]}
	want, got := testLab(t, plain), testLab(t, other)
	for _, test := range []struct {
		leave string
		same  bool
	}{{"b", true}, {"a", false}} {
		weights, calibration := learnedWithout(t, want, test.leave)
		others, calibrations := learnedWithout(t, got, test.leave)
		if bytes.Equal(weights, others) != test.same {
			t.Errorf("without %s: that weights are the same with other values of b is %v", test.leave, !test.same)
		}
		if slices.Equal(calibration.Factors[0], calibrations.Factors[0]) != test.same {
			t.Errorf("without %s: that calibrations are the same with other values of b is %v", test.leave, !test.same)
		}
	}
}

func TestJudgeDaysOfOtherSeasReachNoWeight(t *testing.T) {
	plain := map[string]samples.Series{"a": waves("a", 90), "b": waves("b", 70)}
	l := testLab(t, plain)
	learned := map[time.Time]bool{}
	first, end := l.seas[0].place.Days()
	for day := first; day < end; day++ {
		learned[l.train.Time(day)] = true
	}
	other := map[string]samples.Series{"a": spoiled(plain["a"], func(day time.Time) bool { return !learned[day] }), "b": plain["b"]}
	want, _ := learnedWithout(t, l, "b")
	if got, _ := learnedWithout(t, testLab(t, other), "b"); !bytes.Equal(want, got) {
		t.Error("weights change with days of a that are not for learning")
	}
}

func TestADayHasOneRole(t *testing.T) {
	for _, days := range []int{10, 31, 90, 200} {
		all := seasOf(t, map[string]samples.Series{"a": waves("a", days)})
		train, err := together(all, testSide)
		if err != nil {
			t.Fatal(err)
		}
		role := map[time.Time]string{}
		assign := func(at time.Time, to string) {
			if was := role[at]; was != "" && was != to {
				t.Errorf("%d days: %s is for %s and for %s", days, at.Format(time.DateOnly), was, to)
			}
			role[at] = to
		}
		for day := range train.Days() {
			assign(train.Time(day), "learn")
		}
		// As many days lie between the last of them and the first that judges.
		if gap := all[0].judge.Time(all[0].judge.Refs(testSide, testSide, 1)[0].Day).Sub(train.Time(train.Days()-1)).Hours()/24 - 1; days < shortDays && int(gap) < days/12 {
			t.Errorf("%d days: %g days lie between learning and judging, want %d", days, gap, days/12)
		}
		for to, held := range map[string]samples.HeldOut{"choose": all[0].choose, "judge": all[0].judge} {
			for _, r := range held.Refs(testSide, testSide, 1) {
				assign(held.Time(r.Day), to)
			}
		}
		count := map[string]int{}
		for _, to := range role {
			count[to]++
		}
		if count["learn"] < 2 || count["choose"] < 2 || count["judge"] < 2 {
			t.Errorf("%d days: roles are %v, want two days of each at least", days, count)
		}
	}
}

func TestTheScalingOfASeaDoesNotSeeItsJudgeDays(t *testing.T) {
	for _, days := range []int{5, 31, 90} {
		series := waves("a", days)
		s, err := newSea("a", series)
		if err != nil {
			t.Fatal(err)
		}
		judged := map[time.Time]bool{}
		for _, r := range s.judge.Refs(testSide, testSide, 1) {
			judged[s.judge.Time(r.Day)] = true
		}
		scalingOf := func(series samples.Series) samples.Scaling {
			s, err := newSea("a", series)
			if err != nil {
				t.Fatal(err)
			}
			return s.judge.Scaling()
		}
		same := func(a, b samples.Scaling) bool { return a.Std == b.Std && slices.Equal(a.Mean, b.Mean) }
		plain := s.judge.Scaling()
		if !same(plain, scalingOf(spoiled(series, func(day time.Time) bool { return judged[day] }))) {
			t.Errorf("%d days: the scaling changes with judged days", days)
		}
		if same(plain, scalingOf(spoiled(series, func(day time.Time) bool { return !judged[day] }))) {
			t.Errorf("%d days: the scaling does not change with the days it should come from", days)
		}
	}
}

func TestSeasAreDrawnByTheirBalance(t *testing.T) {
	l := testLab(t, map[string]samples.Series{"a": waves("a", 160), "b": waves("b", 24)})
	for _, balance := range []string{balanceEqual, balanceRoot} {
		m, err := newMixed(l.train, l.seas, 1, balance, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.5
		if balance == balanceRoot {
			a, b := math.Sqrt(float64(len(l.seas[0].refs))), math.Sqrt(float64(len(l.seas[1].refs)))
			want = a / (a + b)
		}
		const draws = 2000
		got := 0.0
		for n := range uint64(draws) {
			e, err := m.Example(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if l.train.Place(e.Ref.Day) == l.seas[0].place {
				got += 1.0 / draws
			}
		}
		const tolerance = 0.045 // four standard errors
		if math.Abs(got-want) > tolerance {
			t.Errorf("balance %s draws a for %.3f of the examples, want %.3f", balance, got, want)
		}
	}
}

func writePacks(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, s := range map[string]samples.Series{"a": waves("a", 90), "b": waves("b", 70), "few": waves("few", 5)} {
		var data bytes.Buffer
		if err := pack.Write(&data, s); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".pack"), data.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestACommandThatWasStoppedEndsWithTheSameResults(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	packs := writePacks(t)
	settings := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(settings, []byte(`{"design":{"size":"tiny"},"side":16,"steps":4,"batch":2,"negate":true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, folder string, more ...string) error {
		args := append([]string{
			"-engine", "ort", "-packs", packs, "-settings", settings, "-o", folder, "-seeds", "2", "-overlays", "8",
			"-choosing", "4", "-per-patch", "1", "-workers", "2",
		}, more...)
		return Run(ctx, args, io.Discard, io.Discard)
	}
	whole, halting := t.TempDir(), t.TempDir()
	if err := run(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	for k := range 4 {
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(300+300*k)*time.Millisecond)
		_ = run(ctx, halting) // it fails wherever it happens to be
		stop()
	}
	if err := run(t.Context(), halting); err != nil {
		t.Fatal(err)
	}
	want, got := readFile(t, whole, "results.jsonl"), readFile(t, halting, "results.jsonl")
	if !bytes.Equal(want, got) {
		t.Errorf("results of a run that was stopped differ:\n%s\nwant\n%s", got, want)
	}
	table := string(readFile(t, whole, "results.md"))
	for _, part := range []string{"| a | a |", "| b | b |", "| few | few |", "mean |", "trusted", "the bar is"} {
		if !strings.Contains(table, part) {
			t.Errorf("the table lacks %q:\n%s", part, table)
		}
	}
	var known skill.Elsewhere // of all three seas, for the card of a starter
	if err := json.Unmarshal(readFile(t, whole, "elsewhere.json"), &known); err != nil || known.Seas != 3 || known.Spread <= 0 {
		t.Errorf("elsewhere.json has %+v, %v", known, err)
	}
	if err := run(t.Context(), whole, "-leave", "none", "-turns"); err != nil {
		t.Fatal(err)
	}
	first, second := readFile(t, whole, "imputer.onnx"), readFile(t, whole, "imputer-2.onnx")
	if bytes.Equal(first, second) {
		t.Error("two seeds have one network")
	}
}

func readFile(t *testing.T, folder, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMistakesOnTheCommandLineAreErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(bad, []byte(`{"steqs":4}`), 0o644); err != nil {
		t.Fatal(err)
	}
	packs := writePacks(t)
	for _, args := range [][]string{
		{},
		{"-packs", packs, "-balance", "fair"},
		{"-packs", packs, "-seeds", "0"},
		{"-packs", packs, "-settings", bad},
		{"-packs", t.TempDir(), "-engine", "ort"},
		{"-packs", packs, "-engine", "ort", "-leave", "aral"},
	} {
		if err := Run(t.Context(), append(args, "-o", t.TempDir()), io.Discard, io.Discard); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
