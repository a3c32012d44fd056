package seas

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// exam is the overlays of a sea in a mode.
type exam struct {
	*evaluate.Exam
	about    string
	settings func(classical.OI) classical.OI // constants of the sea
	kept     *kept
	mode     impute.Mode
	boot     skill.Bootstrap
	oi       []evaluate.Answer            // answers of optimal interpolation, self-calibrated; nil before they were asked for
	said     map[string][]evaluate.Answer // answers of networks by their keys, while these are judged
}

// examOf returns the exam on held-out days of a sea. Analyses and overlays do not
// depend on networks, so it serves all of them.
func (l *lab) examOf(s *sea, role string, held samples.HeldOut, side, count int, mode impute.Mode) (*exam, error) {
	name := fmt.Sprint(role, s.name, side, count, mode)
	if x := l.exams[name]; x != nil {
		return x, nil
	}
	about := role + " " + l.names[s]
	analyser, err := newKeptOI(held, l.kept, impute.ServingOI, map[*samples.Place]placed{held.Places()[0]: {about, s.settings}})
	if err != nil {
		return nil, err
	}
	overlays, err := overlaysOf(held, side, count)
	if err != nil {
		return nil, err
	}
	e, err := evaluate.NewExam(held, impute.Surroundings{Days: held, Analyser: analyser}, overlays, mode)
	if err != nil {
		return nil, err
	}
	x := &exam{Exam: e, about: fmt.Sprint(about, s.constants), settings: s.settings, kept: l.kept, mode: mode, boot: blocksOf(overlays), said: map[string][]evaluate.Answer{}}
	e.Blocks(x.boot.BlockDays)
	l.exams[name] = x
	return x, nil
}

// overlaysOf returns the overlays of held-out days, side by side; of a sea that
// has few windows, half of one apart, and of a few days also with the gaps of the
// day before.
func overlaysOf(held samples.HeldOut, side, count int) ([]samples.Overlay, error) {
	cfg := samples.DefaultOverlays(side)
	cfg.Count = count
	enough := fewOverlays
	if count > 0 {
		enough = min(enough, count)
	}
	out, err := held.Overlays(cfg)
	if err == nil && len(out) >= enough {
		return out, nil
	}
	cfg.Stride, cfg.ApartDays = max(side/2, 1), 1
	return held.Overlays(cfg)
}

// fewOverlays is too few to say anything.
const fewOverlays = 40

// blocksOf returns the bootstrap for overlays: blocks of the default number of
// days, or of fewer where they would be fewer than four.
func blocksOf(overlays []samples.Overlay) skill.Bootstrap {
	b := skill.DefaultBootstrap()
	days := make([]skill.Loss, len(overlays))
	for i, o := range overlays {
		days[i] = skill.Loss{Day: o.Time, Pixels: 1}
	}
	for b.BlockDays > 1 {
		if _, known := b.Mean(days); known {
			break
		}
		b.BlockDays--
	}
	return b
}

// askedAtOnce is how many cases a method gets at a time.
const askedAtOnce = 64

// answers asks a method about every case, without a score: scores take longer.
func (x *exam) answers(ctx context.Context, m evaluate.Method) ([]evaluate.Answer, error) {
	var out []evaluate.Answer
	for first := 0; first < x.Cases(); first += askedAtOnce {
		cases := make([]evaluate.Case, min(askedAtOnce, x.Cases()-first))
		group, inside := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i := range cases {
			group.Go(func() (err error) {
				if err = inside.Err(); err == nil {
					cases[i], err = x.Case(first + i)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		some, err := m.Fill(ctx, cases)
		if err != nil {
			return nil, fmt.Errorf("%s on cases from %d: %w", m.Name, first, err)
		}
		out = append(out, some...)
	}
	return out, nil
}

// interpolated returns the answers of optimal interpolation with the constants of
// the sea, calibrated by the gaps of the days it sees.
func (x *exam) interpolated(ctx context.Context) ([]evaluate.Answer, error) {
	if x.oi != nil {
		return x.oi, nil
	}
	whole := x.InterpolationBy(func(_ int, oi classical.OI) classical.OI { return x.settings(oi) })
	m := evaluate.Method{Name: "oi", Fill: func(ctx context.Context, cases []evaluate.Case) ([]evaluate.Answer, error) {
		out := make([]evaluate.Answer, len(cases))
		var missing []evaluate.Case
		var at []int
		for i, c := range cases {
			e, ok := x.kept.get(x.caseKey(c.Number))
			if out[i] = (evaluate.Answer{Mean: e.value, Sigma: e.sigma}); !ok {
				missing, at = append(missing, c), append(at, i)
			}
		}
		made, err := whole.Fill(ctx, missing)
		for k, a := range made {
			if err == nil {
				out[at[k]] = a
				x.kept.put(x.caseKey(missing[k].Number), estimate{a.Mean, a.Sigma})
			}
		}
		return out, err
	}}
	var err error
	x.oi, err = x.answers(ctx, m)
	if err != nil {
		x.oi = nil
	}
	return x.oi, err
}

// caseKey names the answer of optimal interpolation to a case.
func (x *exam) caseKey(i int) key {
	o := x.Overlay(i)
	return contextKey("answer of oi, "+x.about, o.Time, o.Window, o.Visible, x.mode)
}

// predicted returns the answers of a network.
func (x *exam) predicted(ctx context.Context, n network) ([]evaluate.Answer, error) {
	if said, ok := x.said[n.key]; ok {
		return said, nil
	}
	by := impute.Group{Models: []*impute.Model{n.model}, Turns: n.turns}
	said, err := x.answers(ctx, evaluate.Predicted(by, true))
	if err == nil {
		x.said[n.key] = said
	}
	return said, err
}

// predictions returns the answers of each network.
func (x *exam) predictions(ctx context.Context, networks []network) ([][]evaluate.Answer, error) {
	out := make([][]evaluate.Answer, len(networks))
	for i, n := range networks {
		var err error
		if out[i], err = x.predicted(ctx, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// averaged returns several networks as one: the mean of their means, and the
// variance of their mixture.
func averaged(all [][]evaluate.Answer) []evaluate.Answer {
	if len(all) == 1 {
		return all[0]
	}
	out := make([]evaluate.Answer, len(all[0]))
	n := float64(len(all))
	for i := range out {
		cells := len(all[0][i].Mean)
		out[i] = evaluate.Answer{Mean: make([]float32, cells), Sigma: make([]float32, cells)}
		for c := range cells {
			mean, second := 0.0, 0.0
			for _, one := range all {
				m, s := float64(one[i].Mean[c]), float64(one[i].Sigma[c])
				mean, second = mean+m/n, second+(m*m+s*s)/n
			}
			out[i].Mean[c], out[i].Sigma[c] = float32(mean), float32(math.Sqrt(max(second-mean*mean, 0)))
		}
	}
	return out
}

// calibrated returns answers with calibrated sigmas.
func (x *exam) calibrated(answers []evaluate.Answer, c impute.Calibration) []evaluate.Answer {
	return x.withSigma(answers, func(i int, away []float64) []float32 {
		o, out := x.Overlay(i), make([]float32, len(away))
		for k, s := range answers[i].Sigma {
			out[k] = c.Apply(s, float32(away[k]), o.Time.YearDay())
		}
		return out
	})
}

// widened returns answers with the sigmas that a service would publish. At first
// they are as large as those of optimal interpolation, which calibrates itself on
// a sea that is new to the network; then they follow the days before, of the exam
// and those that were scored earlier.
func (x *exam) widened(answers, oi []evaluate.Answer, earlier []skill.ScoredDay) []evaluate.Answer {
	days := slices.Concat(earlier, x.scoredDays(answers))
	known := map[time.Time]skill.Widening{}
	for _, d := range days {
		known[d.Day] = skill.Widen(days, d.Day)
	}
	return x.withSigma(answers, func(i int, away []float64) []float32 {
		factors := known[dayOf(x.Overlay(i))].Factors(skill.Matching(answers[i].Sigma, oi[i].Sigma, away))
		out := make([]float32, len(away))
		for k, s := range answers[i].Sigma {
			out[k] = s * float32(factors.At(away[k]))
		}
		return out
	})
}

// scoredDays returns what the days of the exam tell about the sigmas of answers. A
// day counts as one, however many windows it has.
func (x *exam) scoredDays(answers []evaluate.Answer) []skill.ScoredDay {
	byDay := map[time.Time][]skill.ScoredDay{}
	for i, a := range answers {
		o := x.Overlay(i)
		byDay[dayOf(o)] = append(byDay[dayOf(o)], skill.ScoreDay(skill.Sample{
			Day: dayOf(o), Height: o.Window.Height, Width: o.Window.Width,
			Truth: o.Values, Mean: a.Mean, Sigma: a.Sigma, Visible: o.Visible, Scored: o.Scored,
		}))
	}
	var out []skill.ScoredDay
	for day, windows := range byDay {
		one := skill.ScoredDay{Day: day}
		for class := range one.Ratios {
			most := 0 // what a single window keeps
			var all []float32
			for _, w := range windows {
				most, all = max(most, len(w.Ratios[class])), append(all, w.Ratios[class]...)
			}
			slices.Sort(all)
			for k := range most {
				one.Ratios[class] = append(one.Ratios[class], all[(2*k+1)*len(all)/(2*most)])
			}
		}
		out = append(out, one)
	}
	return out
}

// dayOf returns the day of an overlay.
func dayOf(o samples.Overlay) time.Time { return o.Time.UTC().Truncate(24 * time.Hour) }

func (x *exam) withSigma(answers []evaluate.Answer, sigma func(i int, away []float64) []float32) []evaluate.Answer {
	out := make([]evaluate.Answer, len(answers))
	for i, a := range answers {
		o := x.Overlay(i)
		out[i] = a
		out[i].Sigma = sigma(i, skill.Distances(o.Visible, o.Window.Height, o.Window.Width))
	}
	return out
}

// cases returns the scored cells of answers, to calibrate by.
func (x *exam) cases(answers []evaluate.Answer) []impute.Case {
	var out []impute.Case
	for i, a := range answers {
		out = append(out, evaluate.Cases(x.Overlay(i), a)...)
	}
	return out
}

// calibration fits the sigmas of networks, as one, to the choose days of the seas
// that they learned from, as many windows of each at most, in both modes.
func (l *lab) calibration(ctx context.Context, teachers []*sea, networks []network) (impute.Calibration, error) {
	var all []impute.Case
	for _, s := range teachers {
		for _, mode := range []impute.Mode{impute.Past, impute.Delayed} {
			x, err := l.examOf(s, "choose", s.choose, l.cfg.Side, l.choosing, mode)
			if err != nil {
				l.log.Warn("a sea does not calibrate", "sea", s.name, "err", err)
				break
			}
			answers, err := x.predictions(ctx, networks)
			if err != nil {
				return impute.Calibration{}, err
			}
			all = append(all, x.cases(averaged(answers))...)
		}
	}
	return impute.Calibrate(all, impute.DefaultCalibration())
}
