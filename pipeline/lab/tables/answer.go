package tables

import (
	"context"
	"fmt"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/baselines"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/version"
)

// do makes the record of an entry and keeps it.
func (r *run) do(ctx context.Context, e *entry) error {
	r.trainSeconds = 0
	if err := r.surround(ctx); err != nil {
		return err
	}
	x, err := r.examsOf(e.mode)
	if err != nil {
		return err
	}
	answers, end, err := r.method(ctx, *e)
	if err != nil {
		return err
	}
	defer end()
	e.record = record{Row: e.row}
	if err := r.judge(ctx, e, x.main, answers); err != nil {
		return err
	}
	if e.record.Truth, err = r.judgeTruth(ctx, x, answers); err != nil {
		return err
	}
	if e.row.By == Stored && len(r.job.Series.Covariates) > 0 {
		if e.record.Covariates, err = r.brings(ctx, e.row.Name, x.main); err != nil {
			return err
		}
	}
	if e.row.Network.Strategy == "guided" && e.seed == 1 {
		if e.record.Masks, err = r.studyMasks(ctx, e.row.Network); err != nil {
			return err
		}
	}
	e.record.TrainSeconds, e.done = r.trainSeconds, true
	return r.folder.keep(e.key, e.record)
}

// A methodFor returns the method that answers an exam.
type methodFor func(*evaluate.Exam) evaluate.Method

// judge scores a method on the exam of its mode.
func (r *run) judge(ctx context.Context, e *entry, x *evaluate.Exam, answers methodFor) error {
	rec := &e.record
	m := answers(x)
	seconds := 0.0
	if e.row.By == Calibrated || e.row.By == CalibratedOI || e.row.drawsMembers() {
		all, err := r.answersOf(ctx, e, x, m)
		if err != nil {
			return err
		}
		seconds = all.seconds
		made, err := changed(e.row, x, all.answers)
		if err != nil {
			return err
		}
		m = evaluate.Given(made)
	}
	m.Name, m.Seed = e.row.Name, e.seed
	var err error
	rec.Verdict, err = x.Judge(ctx, m, func(i int, a evaluate.Answer) {
		rec.Calls = a.Calls
		if i == r.median {
			rec.Sample = shown{Case: i, Mean: finite(a.Mean)}
		}
	}, r.telling("scoring"))
	rec.Verdict.Seconds += seconds
	return err
}

// changed returns the answers of a row that derives them from those of another.
func changed(row Row, x *evaluate.Exam, answers []evaluate.Answer) ([]evaluate.Answer, error) {
	switch row.By {
	case Calibrated, CalibratedOI:
		return x.Calibrated(answers)
	case Members:
		return answers, nil
	}
	out, err := x.CalibratedMembers(answers)
	if err != nil || row.By == Ensemble {
		return out, err
	}
	return evaluate.Textured(out, row.Texture), nil
}

// kept are answers to all cases, and how long they took.
type kept struct {
	answers []evaluate.Answer
	seconds float64
}

// answersOf returns a method's answers to every case. Members, which are
// expensive, are drawn once for all rows of the run that use them.
func (r *run) answersOf(ctx context.Context, e *entry, x *evaluate.Exam, m evaluate.Method) (kept, error) {
	key := fmt.Sprint(r.modelKey, e.row.drawsMembers(), e.seed, e.mode)
	if k, ok := r.drawn[key]; ok {
		return k, nil
	}
	k := kept{answers: make([]evaluate.Answer, x.Cases())}
	v, err := x.Judge(ctx, m, func(i int, a evaluate.Answer) { k.answers[i] = a }, r.telling("filling"))
	k.seconds = v.Seconds
	if err == nil && e.row.drawsMembers() {
		r.drawn[key] = k
	}
	return k, err
}

func (r *run) telling(phase string) func(done, total int) {
	return func(done, total int) { r.tell(phase, done, total, 0) }
}

// judgeTruth scores a method under overlays and under the real clouds.
func (r *run) judgeTruth(ctx context.Context, x *exams, answers methodFor) (*evaluate.TruthScore, error) {
	if x.truth == nil {
		return nil, nil
	}
	score := func(x *evaluate.Exam, phase string) (float64, *skill.Interval, error) {
		v, err := x.Judge(ctx, answers(x), nil, r.telling(phase))
		if err != nil {
			return 0, nil, err
		}
		if v.Summary.MSE == nil {
			return 0, nil, fmt.Errorf("%s has no finite answer", v.Method)
		}
		in, known := r.bootstrap().Mean(v.Losses.Squared)
		if !known {
			return *v.Summary.MSE, nil, nil
		}
		return *v.Summary.MSE, &in, nil
	}
	t := &evaluate.TruthScore{}
	var err error
	if t.Overlay, t.OverlayIn, err = score(x.truth, "scoring against the truth"); err != nil {
		return nil, err
	}
	t.Gaps, t.GapsIn, err = score(x.gaps, "scoring under real clouds")
	return t, err
}

// examsOf returns the exams of a mode, all on the same overlays.
func (r *run) examsOf(mode impute.Mode) (*exams, error) {
	if x := r.exams[mode]; x != nil {
		return x, nil
	}
	x := &exams{}
	var err error
	if x.main, err = evaluate.NewExam(r.held, r.around, r.overlays, mode); err != nil {
		return nil, err
	}
	x.main.Blocks(r.s.BlockDays)
	x.main.Apart(r.s.Split.GapDays)
	x.reached = x.main.WeighGaps()
	if r.truth != nil {
		if x.truth, err = x.main.AgainstTruth(*r.truth); err != nil {
			return nil, err
		}
		if x.gaps, err = x.main.OnRealGaps(*r.truth); err != nil {
			return nil, err
		}
	}
	r.exams[mode] = x
	return x, nil
}

// method returns the method of an entry, and a function that releases it.
func (r *run) method(ctx context.Context, e entry) (methodFor, func(), error) {
	keep := func() {}
	fixed := func(m evaluate.Method) methodFor { return func(*evaluate.Exam) evaluate.Method { return m } }
	switch e.row.By {
	case Climatology:
		return fixed(evaluate.Climatology()), keep, nil
	case Persistence:
		return fixed(evaluate.Persistence()), keep, nil
	case OI, CalibratedOI:
		return (*evaluate.Exam).Interpolation, keep, nil
	case TunedOI:
		oi, err := r.tunedOI(ctx, e.mode)
		return fixed(evaluate.OI(oi)), keep, err
	case DINEOF:
		return fixed(evaluate.DINEOF(classical.DefaultDINEOF())), keep, nil
	case Kriging:
		return fixed(r.job.Gaussian.Kriging(r.held.Scaling())), keep, nil
	case Stored:
		return r.stored(e.row.Name)
	case DINDiff:
		d, err := r.dindiff(ctx, e)
		if err != nil {
			return nil, nil, err
		}
		return fixed(d.Method(r.s.DINDiffDraws, r.s.DINDiffSteps)), d.Close, nil
	}
	model, err := r.network(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	switch e.row.By {
	case Members, Ensemble, Textured:
		members, err := r.members(ctx, e, model)
		if err != nil {
			return nil, nil, err
		}
		return fixed(evaluate.Ensemble(model, members, r.s.Drawing)), members.Close, nil
	case Sampled:
		return r.sampled(e.row.Sampler, model)
	}
	if e.row.Turns || e.row.Seeds > 1 {
		return r.group(ctx, e)
	}
	return fixed(evaluate.OneStep(model)), keep, nil
}

// group returns the networks of an entry's seed and of those after it as one.
func (r *run) group(ctx context.Context, e entry) (methodFor, func(), error) {
	g := impute.Group{}
	if e.row.Turns {
		g.Turns = impute.Turns()
	}
	end := func() {
		for _, m := range g.Models {
			m.Close()
		}
	}
	variance := false
	for i := range max(e.row.Seeds, 1) {
		one := e
		one.seed = e.seed + uint64(i)
		m, err := r.network(ctx, one)
		if err != nil {
			end()
			return nil, nil, err
		}
		g.Models, variance = append(g.Models, m.In(r.runner)), m.Design().Variance
	}
	return func(*evaluate.Exam) evaluate.Method { return evaluate.Predicted(g, variance) }, end, nil
}

// tunedOI tunes optimal interpolation on windows of the training days, with the
// days around that a mode shows.
func (r *run) tunedOI(ctx context.Context, mode impute.Mode) (classical.OI, error) {
	key, err := keyOf(r.dataKey, mode, r.s.Train.Side)
	if err != nil {
		return classical.OI{}, err
	}
	name := "oi-" + key + ".json"
	var oi classical.OI
	if known, err := r.folder.load(&oi, networksFolder, name); err != nil || known {
		return oi, err
	}
	r.tell("tuning", 0, 1, 0)
	if oi, _, err = version.TuneInterpolation(ctx, r.train, 0, r.refs(r.s.Train.Side), mode, version.TuningWindows, noise.New(1, "interpolation")); err != nil {
		return oi, err
	}
	return oi, r.folder.save(oi, networksFolder, name)
}

// stored returns the version of a row as it serves, with the scaling of the
// training days where it has none of its own for the grid.
func (r *run) stored(row string) (methodFor, func(), error) {
	c, err := version.LoadCandidate(r.job.Stored[row], r.runner, r.held)
	if err != nil {
		return nil, nil, fmt.Errorf("row %s: %w", row, err)
	}
	return func(x *evaluate.Exam) evaluate.Method { return c.Method(row, x, r.held) }, c.Close, nil
}

// brings says what each covariate brings the version of a row.
func (r *run) brings(ctx context.Context, row string, x *evaluate.Exam) (*covariate.Kept, error) {
	c, err := version.LoadCandidate(r.job.Stored[row], r.runner, r.held)
	if err != nil {
		return nil, fmt.Errorf("row %s: %w", row, err)
	}
	defer c.Close()
	return c.Brings(ctx, x, r.held)
}

// sampled returns a sampler on a network.
func (r *run) sampled(s Sampler, model *impute.Model) (methodFor, func(), error) {
	sampler, err := baselines.SamplerOf(s.Name)
	if err != nil {
		return nil, nil, err
	}
	small := model.In(r.small)
	return func(x *evaluate.Exam) evaluate.Method {
		return baselines.Sampled(small, sampler, s.Config, func(c evaluate.Case) baselines.Contexts {
			return baselines.MasksOf(r.train, x.Overlay(c.Number).Window, c.Inputs.Visible)
		})
	}, small.Close, nil
}

// finite returns values with zeros for NaN, which JSON cannot hold.
func finite(values []float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		if v-v == 0 {
			out[i] = v
		}
	}
	return out
}
