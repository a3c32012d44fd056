package seas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"lacuna/internal/durable"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/skill"
)

// A record is the verdict on one sea in one mode.
type record struct {
	Left      string      `json:"left"` // sea that was left out, or none
	Sea       string      `json:"sea"`  // sea that was judged
	Mode      impute.Mode `json:"mode"`
	Side      int         `json:"side"` // side of the windows in cells
	Steps     int         `json:"steps"`
	Days      int         `json:"days"` // number of judged days
	Overlays  int         `json:"overlays"`
	BlockDays int         `json:"block_days"` // block length of the bootstrap
	Rows      []row       `json:"rows"`
	Curve     []point     `json:"curve"` // trust curve
	Share     float64     `json:"share"` // mean share by which the network was followed
	Best      float64     `json:"best"`  // share that would have been best
	// Elsewhere is what other seas said of the share; nil: they were not asked.
	Elsewhere *skill.Elsewhere `json:"elsewhere,omitempty"`
}

// The methods of a record.
const (
	methodOI      = "oi"      // optimal interpolation, self-calibrated
	methodNetwork = "network" // a network, calibrated on the seas it learned from
	methodMean    = "mean"    // all networks as one, where there are several
	methodServed  = "served"  // the same with the sigmas of a service, followed all the way
	methodTrusted = "trusted" // the same, followed as far as earlier days of the sea say, and other seas
)

// A row is the scores of a method.
type row struct {
	Method   string  `json:"method"`
	Seed     uint64  `json:"seed,omitempty"`
	MSE      float64 `json:"mse"`
	CRPS     float64 `json:"crps"`
	Coverage float64 `json:"coverage"` // share of truths in the 90 % interval
	// CoverageIn is where that lies by bootstrap over days, 95 %; nil: too few blocks of days.
	CoverageIn *skill.Interval `json:"coverage_in,omitempty"`
	ByMSE      *difference     `json:"by_mse,omitempty"`
	ByCRPS     *difference     `json:"by_crps,omitempty"`
}

// A difference is a method less optimal interpolation over the same cells,
// relative to that.
type difference struct {
	Relative float64         `json:"relative"`
	Interval *skill.Interval `json:"interval,omitempty"` // relative as well, 95 %; nil: too few blocks of days
	P        float64         `json:"p,omitempty"`
}

// recordRelease tells records apart that other programs of this name made.
const recordRelease = 3

// recordOf returns the record of a sea in a mode: the stored one, or a new one.
func (l *lab) recordOf(ctx context.Context, of run, s *sea, mode impute.Mode) (record, error) {
	about := []any{recordRelease, of.left, of.elsewhere, s.name, l.names[s], s.constants, mode, l.judgedSide(), l.overlays, l.choosing, l.turns}
	for _, n := range of.networks {
		about = append(about, n.key)
	}
	name, err := keyOf(about...)
	if err != nil {
		return record{}, err
	}
	path := filepath.Join(l.work, "record-"+name+".json")
	var r record
	data, err := os.ReadFile(path)
	if err == nil {
		return r, json.Unmarshal(data, &r)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	x, err := l.examOf(s, "judge", s.judge, l.judgedSide(), l.overlays, mode)
	if err != nil {
		return r, err
	}
	r = record{Left: of.left, Elsewhere: of.elsewhere, Sea: s.name, Mode: mode, Side: l.judgedSide(), Steps: l.cfg.Steps, Overlays: x.Cases(), BlockDays: x.boot.BlockDays}
	if err := l.judge(ctx, &r, x, s, of); err != nil {
		return r, errors.Join(err, l.kept.flush())
	}
	if data, err = json.Marshal(r); err != nil {
		return r, err
	}
	return r, errors.Join(l.kept.flush(), durable.WriteFile(path, data, 0o644))
}

// judgedSide returns the side of the windows that are judged.
func (l *lab) judgedSide() int {
	if l.side > 0 {
		return l.side
	}
	return l.cfg.Side
}

// judge asks all methods and adds their rows.
func (l *lab) judge(ctx context.Context, r *record, x *exam, s *sea, of run) error {
	oi, err := x.interpolated(ctx)
	if err != nil {
		return err
	}
	reference, err := x.verdict(ctx, methodOI, 0, oi)
	if err != nil {
		return err
	}
	r.Days = reference.Summary.Days
	add := func(method string, seed uint64, answers []evaluate.Answer) error {
		v := reference
		if method != methodOI {
			var err error
			if v, err = x.verdict(ctx, method, seed, answers); err != nil {
				return err
			}
		}
		one, err := rowOf(v, reference, x.boot)
		r.Rows = append(r.Rows, one)
		l.log.Info("result", "left", r.Left, "sea", r.Sea, "mode", r.Mode, "method", method, "seed", seed, "mse", one.MSE, "coverage", one.Coverage)
		return err
	}
	if err := add(methodOI, 0, oi); err != nil {
		return err
	}
	said, err := x.predictions(ctx, of.networks)
	if err != nil {
		return err
	}
	for i := range of.networks {
		c, err := l.calibration(ctx, of.teachers, of.networks[i:i+1])
		if err != nil {
			return err
		}
		if err := add(methodNetwork, of.networks[i].seed, x.calibrated(said[i], c)); err != nil {
			return err
		}
	}
	c, err := l.calibration(ctx, of.teachers, of.networks)
	if err != nil {
		return err
	}
	mean := x.calibrated(averaged(said), c)
	if len(of.networks) > 1 {
		if err := add(methodMean, 0, mean); err != nil {
			return err
		}
	}
	before, err := l.before(ctx, s, r.Mode, of, c)
	if err != nil {
		return err
	}
	days := x.departures(oi, mean)
	followed, share := x.followed(oi, mean, evidence(before.days, days), of.elsewhere)
	r.Curve, r.Best, r.Share = curve(days), best(days), share
	return errors.Join(add(methodServed, 0, x.widened(mean, oi, before.served)), add(methodTrusted, 0, x.widened(followed, oi, before.trusted)))
}

// history is what a service would know of a sea from days that were scored before
// those that judge.
type history struct {
	days            []departure
	served, trusted []skill.ScoredDay
}

// before scores networks on the days of a sea that choose, none of which they
// learned from where it was left out. A sea of few days has none.
func (l *lab) before(ctx context.Context, s *sea, mode impute.Mode, of run, c impute.Calibration) (history, error) {
	if of.left != s.name || !s.teaches() {
		return history{}, nil // they were calibrated by these days, or there are none
	}
	x, err := l.examOf(s, "choose", s.choose, l.judgedSide(), l.choosing, mode)
	if err != nil {
		l.log.Warn("a sea has no days before", "sea", s.name, "err", err)
		return history{}, nil
	}
	oi, err := x.interpolated(ctx)
	if err != nil {
		return history{}, err
	}
	said, err := x.predictions(ctx, of.networks)
	if err != nil {
		return history{}, err
	}
	mean := x.calibrated(averaged(said), c)
	h := history{days: x.departures(oi, mean), served: x.scoredDays(mean)}
	followed, _ := x.followed(oi, mean, evidence(h.days), of.elsewhere)
	h.trusted = x.scoredDays(followed)
	return h, nil
}

// verdict scores answers.
func (x *exam) verdict(ctx context.Context, name string, seed uint64, answers []evaluate.Answer) (evaluate.Verdict, error) {
	m := evaluate.Given(answers)
	m.Name, m.Seed = name, seed
	v, err := x.Judge(ctx, m, nil, nil)
	if err == nil && (v.Summary.MSE == nil || v.Summary.Gaussian == nil || v.Summary.NonFinite > 0) {
		err = fmt.Errorf("%s gave %d cells that are not finite", name, v.Summary.NonFinite)
	}
	return v, err
}

// rowOf returns the row of a verdict beside that of optimal interpolation.
func rowOf(v, oi evaluate.Verdict, boot skill.Bootstrap) (row, error) {
	covered, _ := v.Summary.Gaussian.Covers(0.9)
	r := row{Method: v.Method, Seed: v.Seed, MSE: *v.Summary.MSE, CRPS: v.Summary.Gaussian.CRPS, Coverage: covered}
	if in, known := boot.Share(v.Losses.Covered); known {
		r.CoverageIn = &in
	}
	if v.Method == methodOI {
		return r, nil
	}
	var err error
	if r.ByMSE, err = against(v.Losses.Squared, oi.Losses.Squared, boot); err != nil {
		return r, err
	}
	r.ByCRPS, err = against(v.Losses.CRPS, oi.Losses.CRPS, boot)
	return r, err
}

// against compares losses with those of a reference on the same cases.
func against(losses, reference []skill.Loss, boot skill.Bootstrap) (*difference, error) {
	if len(losses) != len(reference) {
		return nil, fmt.Errorf("%d cases against %d", len(losses), len(reference))
	}
	sum, base, pixels := 0.0, 0.0, 0.0
	for i := range losses {
		sum, base, pixels = sum+losses[i].Sum, base+reference[i].Sum, pixels+reference[i].Pixels
	}
	d := &difference{Relative: sum/base - 1}
	if _, known := boot.Mean(reference); !known {
		return d, nil
	}
	p, err := boot.Paired(losses, reference)
	if err != nil {
		return nil, err
	}
	scale := pixels / base
	d.Interval, d.P = &skill.Interval{Low: p.Interval.Low * scale, High: p.Interval.High * scale}, p.P
	return d, nil
}
