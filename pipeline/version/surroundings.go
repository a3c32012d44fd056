package version

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
)

// surroundings makes the surroundings, or waits for them where they were begun.
func (r *run) surroundings(ctx context.Context) error {
	r.waited.Store(true)
	return r.around.or(ctx, r.makeSurroundings)
}

// tellBackground reports how far the surroundings are, in their phase.
func (r *run) tellBackground(done, total int) {
	if r.waited.Load() {
		r.hooks.Progress(Progress{Phase: PhaseBackground, Step: done, Steps: total})
	}
}

// makeSurroundings analyses the days around patches and overlays where a
// network is given that.
func (r *run) makeSurroundings(ctx context.Context) error {
	extras := r.s.Imputer.Design.Extras
	if data := r.req.incumbent()[PartImputer]; data != nil {
		champion, err := impute.Load(data, nil) // for its design; it is never run
		if err != nil {
			return fmt.Errorf("load the champion: %w", err)
		}
		theirs := champion.Design().Extras
		extras.Background, extras.Analysis = extras.Background || theirs.Background, extras.Analysis || theirs.Analysis
	}
	if extras.Analysis {
		by, err := r.interpolation(ctx)
		if err != nil {
			return err
		}
		r.material.Analyser = analyserOf(r.learned, impute.QuickOI, by.Constants...)
		r.aroundChoose.Analyser = analyserOf(r.chooseSide, impute.ServingOI, by.Constants...)
		r.aroundJudge.Analyser = analyserOf(r.judgeSide, impute.ServingOI, by.Constants...)
	}
	if extras.Background {
		if err := r.makeBackgrounds(ctx); err != nil {
			return err
		}
	}
	var err error
	r.scoring, err = r.analysed(ctx, r.choosing[:min(r.s.Judging.Scoring, len(r.choosing))])
	return err
}

// analysed returns the inputs of a network for overlays that choose, with an
// analysis of the visible cells. Hidden values are among the inputs, but not visible.
func (r *run) analysed(ctx context.Context, overlays []samples.Overlay) ([]impute.Inputs, error) {
	out := make([]impute.Inputs, len(overlays))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.s.Imputer.Workers)
	for i, o := range overlays {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			out[i], err = r.aroundChoose.Analysed(o.Ref, o.Visible, r.s.Judging.Mode)
			return err
		})
	}
	return out, group.Wait()
}

// side is either side of a split.
type side interface {
	Places() []*samples.Place
	Place(day int) *samples.Place
	Analyse(r samples.Ref, visible []bool, cfg samples.BackgroundConfig) (value, sigma []float32, err error)
	Backgrounds(ctx context.Context, days []int, cfg samples.BackgroundConfig, progress func(done, total int)) (samples.Backgrounds, error)
}

// placeOI is an analyser with the settings that suit the grid of each place.
type placeOI struct {
	days     side
	settings map[*samples.Place]classical.OI
}

// Analyser returns an analyser of training days of several places.
func Analyser(days samples.Train, of func(classical.OI) classical.OI) impute.Analyser {
	return analyserOf(days, of)
}

// analyserOf returns an analyser with the constants of the first places, and the
// defaults of the others.
func analyserOf(days side, of func(classical.OI) classical.OI, constants ...parts.Constants) placeOI {
	a := placeOI{days, map[*samples.Place]classical.OI{}}
	for i, p := range days.Places() {
		oi := classical.DefaultOI(p.Grid)
		if i < len(constants) {
			oi = constants[i].Of(oi)
		}
		a.settings[p] = of(oi)
	}
	return a
}

// Analyse implements impute.Analyser.
func (a placeOI) Analyse(r samples.Ref, visible []bool, mode impute.Mode) (value, sigma []float32, err error) {
	return impute.OI{Days: a.days, Settings: a.settings[a.days.Place(r.Day)]}.Analyse(r, visible, mode)
}

// placeBackgrounds are those of several places.
type placeBackgrounds []samples.Backgrounds

// Cut implements impute.Backgrounds.
func (b placeBackgrounds) Cut(r samples.Ref) (value, sigma []float32, ok bool) {
	for _, some := range b {
		if value, sigma, ok = some.Cut(r); ok {
			return value, sigma, true
		}
	}
	return nil, nil, false
}

func (r *run) makeBackgrounds(ctx context.Context) error {
	learn, choose, judge := daysOf(r.refs), overlayDays(r.choosing), overlayDays(r.judging)
	total, done := 2*(len(learn)+len(choose)+len(judge)), 0
	tell := func(n int) { r.tellBackground(done+n, total) }
	for _, job := range []struct {
		dst    *impute.Backgrounds
		from   side
		days   []int
		future int
	}{
		{&r.material.Past, r.learned, learn, 0},
		{&r.aroundChoose.Past, r.chooseSide, choose, 0},
		{&r.aroundJudge.Past, r.judgeSide, judge, 0},
		{&r.material.Delayed, r.learned, learn, samples.NextDays},
		{&r.aroundChoose.Delayed, r.chooseSide, choose, samples.NextDays},
		{&r.aroundJudge.Delayed, r.judgeSide, judge, samples.NextDays},
	} {
		cfg := samples.BackgroundConfig{PastDays: samples.LastDays, FutureDays: job.future, Workers: r.s.Imputer.Workers}
		made, err := backgroundsOf(ctx, job.from, job.days, cfg, tell)
		if err != nil {
			return err
		}
		done += len(job.days)
		*job.dst = made
	}
	return nil
}

// backgroundsOf makes those of the days of every place with the settings that
// suit its grid.
func backgroundsOf(ctx context.Context, from side, days []int, cfg samples.BackgroundConfig, tell func(done int)) (placeBackgrounds, error) {
	var made placeBackgrounds
	done := 0
	for _, p := range from.Places() {
		own := slices.DeleteFunc(slices.Clone(days), func(day int) bool { return from.Place(day) != p })
		cfg.OI = impute.ServingOI(classical.DefaultOI(p.Grid))
		b, err := from.Backgrounds(ctx, own, cfg, func(n, _ int) { tell(done + n) })
		if err != nil {
			return nil, err
		}
		done += len(own)
		made = append(made, b)
	}
	return made, nil
}

func daysOf(refs []samples.Ref) []int {
	seen := map[int]bool{}
	var out []int
	for _, ref := range refs {
		if !seen[ref.Day] {
			seen[ref.Day] = true
			out = append(out, ref.Day)
		}
	}
	return out
}

func overlayDays(overlays []samples.Overlay) []int {
	var refs []samples.Ref
	for _, o := range overlays {
		refs = append(refs, o.Ref)
	}
	return daysOf(refs)
}
