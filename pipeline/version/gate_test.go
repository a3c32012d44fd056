package version

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// anExam returns an exam on held-out days of the simulated sea.
func anExam(t *testing.T) (*evaluate.Exam, samples.HeldOut) {
	t.Helper()
	return anExamOf(t, series(t), 40) // fewer are of too few days for a verdict
}

// anExamOf takes so many overlays of some 200: each is interpolated once a ruling.
func anExamOf(t *testing.T, s samples.Series, overlays int) (*evaluate.Exam, samples.HeldOut) {
	t.Helper()
	_, held, err := s.Split(shortSettings().Split)
	if err != nil {
		t.Fatal(err)
	}
	cfg := samples.DefaultOverlays(16)
	cfg.Count = overlays
	cases, err := held.Overlays(cfg)
	if err != nil {
		t.Fatal(err)
	}
	exam, err := evaluate.NewExam(held, impute.Surroundings{Days: held}, cases, impute.Past)
	if err != nil {
		t.Fatal(err)
	}
	return exam, held
}

// answering returns an entrant that knows the truth and adds given errors. Its
// sigma is such that nine of ten errors are inside their interval.
func answering(exam *evaluate.Exam, err func(o samples.Overlay, number int, distance float64) float64) Entrant {
	fill := func(_ context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		out := make([]evaluate.Answer, len(cases))
		for i, c := range cases {
			o := exam.Overlay(c.Number)
			distance := skill.Distances(field.Mask(o.Visible), o.Window.Height, o.Window.Width)
			a := evaluate.Answer{Mean: make([]float32, len(o.Values)), Sigma: make([]float32, len(o.Values))}
			for k := range a.Mean {
				e := err(o, c.Number, distance[k])
				if o.Scored[k] {
					a.Mean[k] = o.Values[k] + float32(e)
				}
				a.Sigma[k] = float32(math.Abs(e))
				if k%10 == 0 {
					a.Sigma[k] *= 0.1
				}
			}
			out[i] = a
		}
		return out, nil
	}
	return Entrant{Method: evaluate.Method{Name: "crafted", Fill: fill}, Latency: time.Millisecond}
}

// fading errs more the further a cell is from visible ones, so that there is
// no seam, up or down from case to case.
func fading(most float64) func(samples.Overlay, int, float64) float64 {
	return func(_ samples.Overlay, number int, distance float64) float64 {
		return most * (0.02 + math.Min(math.Max(distance-1, 0), 4)/4) * float64(1-2*(number%2)) * (1 + 0.1*float64(number%7))
	}
}

func TestPoisonedChallengersAreRefusedEachForItsReason(t *testing.T) {
	exam, _ := anExam(t)
	champion := answering(exam, fading(0.75))
	gate := Gate{Rule: skill.DefaultRule(), Low: -12, High: 12}
	for _, tt := range []struct {
		name   string
		poison func() Entrant
		want   string // the reason; empty: promoted
		alone  bool   // no other reason is given
	}{
		{name: "better", poison: func() Entrant { return answering(exam, fading(0.4)) }},
		{name: "the same", poison: func() Entrant { return champion }, want: "0.0 % more error than the champion", alone: true},
		{name: "seams but a better MSE", poison: func() Entrant {
			return answering(exam, func(samples.Overlay, int, float64) float64 { return 0.35 })
		}, want: "|CBGD-1| goes from", alone: true},
		{name: "NaN", poison: func() Entrant {
			return answering(exam, func(_ samples.Overlay, number int, d float64) float64 {
				if number == 3 {
					return math.NaN()
				}
				return fading(0.4)(samples.Overlay{}, number, d)
			})
		}, want: "scored cells got no finite value"},
		{name: "shuffled targets", poison: func() Entrant {
			e := answering(exam, fading(0.4))
			e.Method.Fill = shuffled(exam)
			return e
		}, want: "more error than the champion"},
		{name: "outside of what is physical", poison: func() Entrant {
			e := answering(exam, fading(0.4))
			fill := e.Method.Fill
			e.Method.Fill = func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
				answers, err := fill(ctx, cases)
				for i, c := range cases { // cells that nobody can score
					o := exam.Overlay(c.Number)
					for k := range answers[i].Mean {
						if o.Sea[k] && !o.Visible[k] && !o.Scored[k] {
							answers[i].Mean[k] = 40
						}
					}
				}
				return answers, err
			}
			return e
		}, want: "lie outside -12 to 12", alone: true},
		{name: "slow", poison: func() Entrant {
			e := answering(exam, fading(0.4))
			e.Latency = time.Second
			return e
		}, want: "one map takes 1s", alone: true},
		{name: "fails its self-test", poison: func() Entrant {
			e := answering(exam, fading(0.4))
			e.Faults = []string{"the model that was saved and loaded answers differently by 3"}
			return e
		}, want: "answers differently", alone: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ruling, err := gate.Decide(t.Context(), exam, tt.poison(), &champion, nil)
			if err != nil {
				t.Fatal(err)
			}
			against := Against(ruling.Decision)
			if tt.want == "" {
				if !ruling.Decision.Promote {
					t.Errorf("refused: %q", against)
				}
				return
			}
			if ruling.Decision.Promote || !strings.Contains(strings.Join(against, "\n"), tt.want) {
				t.Errorf("promote %v, against it %q, want %q", ruling.Decision.Promote, against, tt.want)
			}
			if tt.alone && len(against) != 1 {
				t.Errorf("against it %q, want one reason", against)
			}
		})
	}
}

// Interpolation fills where no model serves, and a model that is worse than
// that would make the product worse.
func TestNobodyIsPromotedWhoIsWorseThanInterpolation(t *testing.T) {
	exam, _ := anExam(t)
	gate := Gate{Rule: skill.DefaultRule(), Low: -12, High: 12}
	poor := answering(exam, fading(1.4))
	for _, tt := range []struct {
		name     string
		errs     float64
		champion *Entrant
		promoted bool
	}{
		{"first and better", 0.4, nil, true},
		{"first and worse", 1.1, nil, false},
		{"better than a poor champion and than interpolation", 0.4, &poor, true},
		{"better than a poor champion only", 1.1, &poor, false},
	} {
		ruling, err := gate.Decide(t.Context(), exam, answering(exam, fading(tt.errs)), tt.champion, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ruling.Interpolation == nil || ruling.OverInterpolation == nil || ruling.Decision.Promote != tt.promoted {
			t.Errorf("%s: promoted %v, want %v: %q", tt.name, ruling.Decision.Promote, tt.promoted, ruling.Decision.Reasons)
		}
		if against := Against(ruling.Decision); !tt.promoted && (len(against) == 0 || slices.ContainsFunc(against, func(reason string) bool { return !strings.Contains(reason, "than optimal interpolation") })) {
			t.Errorf("%s: against it %q, want interpolation alone", tt.name, against)
		}
	}
}

// shuffled answers with the truth of another case.
func shuffled(exam *evaluate.Exam) func(context.Context, []evaluate.Case) ([]evaluate.Answer, error) {
	return func(_ context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		out := make([]evaluate.Answer, len(cases))
		for i, c := range cases {
			other := exam.Overlay((c.Number + exam.Cases()/2) % exam.Cases())
			a := evaluate.Answer{Mean: make([]float32, len(other.Values)), Sigma: make([]float32, len(other.Values))}
			for k, v := range other.Values {
				if v == v { // not NaN
					a.Mean[k] = v
				}
				a.Sigma[k] = 1
			}
			out[i] = a
		}
		return out, nil
	}
}

func TestWrongNormalisationIsRefused(t *testing.T) {
	good := firstModel(t)
	exam, held := anExam(t)
	runner, err := impute.NewRunner(enginetest.Open(t), impute.RunnerConfig{Batch: 1, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	entrant := func(s parts.Scaling) Entrant {
		files := maps.Clone(good.Parts)
		if files[PartScaling], err = json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		c, err := LoadCandidate(files, runner, held)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return Entrant{Method: c.Method("candidate", exam, held)}
	}
	champion := entrant(*good.Scaling)
	gate := Gate{Rule: skill.DefaultRule(), Low: -20, High: 20}
	for name, factor := range map[string]float64{"natural logarithms for decimal ones": math.Ln10, "the reverse": 1 / math.Ln10} {
		wrong := *good.Scaling
		wrong.Mean = slices.Clone(wrong.Mean)
		for i := range wrong.Mean {
			wrong.Mean[i] *= float32(factor)
		}
		wrong.Std *= factor
		ruling, err := gate.Decide(t.Context(), exam, entrant(wrong), &champion, nil)
		if err != nil {
			t.Fatal(err)
		}
		if against := Against(ruling.Decision); ruling.Decision.Promote || len(against) == 0 {
			t.Errorf("%s: promoted with reasons %q", name, ruling.Decision.Reasons)
		} else {
			t.Logf("%s: %q", name, against)
		}
	}
}

func TestRescalingThereAndBackChangesNothing(t *testing.T) {
	r := rescaling{factor: 0.7, offset: []float32{0.1, -2, 3}}
	in := impute.Inputs{
		Values: []float32{1, field.NaN(), -1}, Background: []float32{0, 1, 2}, BackgroundSigma: []float32{1, 1, 2},
		Last: samples.Composite{Value: []float32{1, 0, 2}, Freshness: []float32{1, 0, 0.5}},
	}
	out := r.inputs(in)
	if out.Last.Value[1] != 0 {
		t.Errorf("a cell that was never observed got the value %v", out.Last.Value[1])
	}
	if got, want := out.BackgroundSigma[2], float32(1.4); math.Abs(float64(got-want)) > 1e-6 {
		t.Errorf("background sigma %v, want %v", got, want)
	}
	mean, sigma := slices.Clone(out.Background), slices.Clone(out.BackgroundSigma)
	r.back(mean, sigma)
	for i := range mean {
		if math.Abs(float64(mean[i]-in.Background[i])) > 1e-6 || math.Abs(float64(sigma[i]-in.BackgroundSigma[i])) > 1e-6 {
			t.Errorf("cell %d came back as %v ± %v, was %v ± %v", i, mean[i], sigma[i], in.Background[i], in.BackgroundSigma[i])
		}
	}
}

func TestReplayKeepsOldSeasonsAndPrefersNewDays(t *testing.T) {
	const days, perDay = 400, 5
	var refs []samples.Ref
	for d := range days {
		for w := range perDay {
			refs = append(refs, samples.Ref{Day: d, Window: samples.Square(w, 0, 8)})
		}
	}
	age := func(day int) time.Duration { return time.Duration(days-1-day) * 24 * time.Hour }
	r := Replay{HalfLifeDays: 30, Floor: 0.25}
	chosen, err := r.choose(refs, age, noise.New(1, "test"))
	if err != nil {
		t.Fatal(err)
	}
	if len(chosen) != len(refs) {
		t.Fatalf("%d patches of %d", len(chosen), len(refs))
	}
	sum := 0.0
	for d := range days {
		sum += perDay * r.weight(time.Duration(days-1-d)*24*time.Hour)
	}
	count := make([]float64, days)
	for _, ref := range chosen {
		count[ref.Day]++
	}
	for month := range 13 {
		got, want := 0.0, 0.0
		for d := month * 30; d < month*30+30; d++ {
			got += count[d]
			want += perDay * r.weight(time.Duration(days-1-d)*24*time.Hour) * float64(len(refs)) / sum
		}
		if math.Abs(got-want) > 2 {
			t.Errorf("month %d is learned from %v times, want %.1f", month, got, want)
		}
	}
	even, err := Replay{}.choose(refs, age, noise.New(1, "test"))
	if err != nil || !slices.Equal(even, refs) {
		t.Errorf("without a half-life every patch counts once: %v", err)
	}
}
