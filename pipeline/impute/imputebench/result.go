package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// result is one line of results.jsonl: a network, or a method, in one mode and
// drawn in one way.
type result struct {
	Name      string      `json:"name"`
	Seed      uint64      `json:"seed"`
	Method    string      `json:"method"`
	Partition string      `json:"partition,omitempty"`
	Mode      impute.Mode `json:"mode"`
	Variant   string      `json:"variant"` // how the answer was made
	Training  *training   `json:"training,omitempty"`
	Calls     int         `json:"calls,omitempty"` // of the network, for each member
	Seconds   float64     `json:"seconds"`         // to answer for all overlays
	Overlays  int         `json:"overlays"`

	Summary skill.Summary `json:"summary"`
}

// training is how a network came about.
type training struct {
	Weights        int           `json:"weights"`
	Report         impute.Report `json:"report"`
	Seconds        float64       `json:"seconds"`          // with compiling
	StepsPerSecond float64       `json:"steps_per_second"` // without, batches included
	File           string        `json:"file"`
}

func (b *bench) append(r result) error {
	f, err := os.OpenFile(filepath.Join(b.output, "results.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(json.NewEncoder(f).Encode(r), f.Close()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	args := []any{"name", r.Name, "seed", r.Seed, "mode", r.Mode, "variant", r.Variant, "overlays", r.Overlays, "seconds", r.Seconds}
	for _, v := range []struct {
		key string
		v   *float64
	}{{"mse", r.Summary.MSE}, {"psnr", r.Summary.PSNR}, {"cbgd", r.Summary.CBGD}} {
		if v.v != nil {
			args = append(args, v.key, *v.v)
		}
	}
	args = append(args, calibrationArgs("gaussian", r.Summary.Gaussian)...)
	args = append(args, calibrationArgs("ensemble", r.Summary.Ensemble)...)
	b.log.Info("result", args...)
	return nil
}

func calibrationArgs(name string, c *skill.Calibration) []any {
	if c == nil {
		return nil
	}
	args := []any{name + "_crps", c.CRPS}
	if c.SpreadSkill != nil {
		args = append(args, name+"_spread_skill", *c.SpreadSkill)
	}
	if share, known := c.Covers(0.9); known {
		args = append(args, name+"_covers_90", share)
	}
	return args
}

// answer is what a method says of an overlay.
type answer struct {
	mean, sigma []float32
	members     [][]float32
}

// score judges answers to the first overlays.
func (b *bench) score(answers []answer) (skill.Summary, error) {
	opt := skill.DefaultOptions()
	opt.Range = b.valueRange()
	scores := skill.NewScores(opt)
	for i, a := range answers {
		o := b.overlays[i]
		err := scores.Add(skill.Sample{
			Day: o.Time, Height: o.Window.Height, Width: o.Window.Width, Truth: o.Values,
			Mean: a.mean, Sigma: a.sigma, Members: a.members, Visible: o.Visible, Scored: o.Scored,
		})
		if err != nil {
			return skill.Summary{}, fmt.Errorf("score overlay %d: %w", i, err)
		}
	}
	return scores.Summary(), nil
}

// valueRange is that of all held-out values.
func (b *bench) valueRange() float64 {
	low, high := float32(0), float32(0)
	for _, o := range b.overlays {
		for i, v := range o.Values {
			if o.Visible[i] || o.Scored[i] {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return float64(high - low)
}

// calibrated returns the answers with sigmas calibrated on the overlays of the
// other months.
func (b *bench) calibrated(answers []answer) ([]answer, error) {
	out := make([]answer, len(answers))
	cases := [2][]impute.Case{}
	for i, a := range answers {
		o := b.overlays[i]
		h := half(o)
		distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
		for k, scored := range o.Scored {
			if scored {
				cases[h] = append(cases[h], impute.Case{
					Error: a.mean[k] - o.Values[k], Sigma: a.sigma[k], DistanceCells: float32(distance[k]), DayOfYear: o.Time.YearDay(),
				})
			}
		}
	}
	var fitted [2]impute.Calibration
	for h := range fitted {
		other := cases[1-h]
		if len(other) == 0 { // a single month: better than nothing
			other = cases[h]
		}
		if len(other) == 0 {
			return nil, errors.New("nothing is scored")
		}
		var err error
		if fitted[h], err = impute.Calibrate(other, impute.DefaultCalibration()); err != nil {
			return nil, err
		}
	}
	for i, a := range answers {
		o := b.overlays[i]
		distance := skill.Distances(o.Visible, o.Window.Height, o.Window.Width)
		out[i] = answer{mean: a.mean, sigma: make([]float32, len(a.sigma))}
		for k, s := range a.sigma {
			out[i].sigma[k] = fitted[half(o)].Apply(s, float32(distance[k]), o.Time.YearDay())
		}
	}
	return out, nil
}

// half puts every other month on either side.
func half(o samples.Overlay) int { return int(o.Time.Month()) % 2 }
