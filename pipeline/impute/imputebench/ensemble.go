package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/skill"
)

// streams returns where the noise of each overlay comes from.
func (b *bench) streams(n int) []noise.Stream {
	out := make([]noise.Stream, n)
	for i := range out {
		out[i] = noise.New(1, "overlay").Sub(uint64(i))
	}
	return out
}

// runMembers trains the members of a model and scores them for each way of
// drawing, in each mode.
func (b *bench) runMembers(ctx context.Context, model *impute.Model, e experiment, seed uint64) error {
	cfg := e.Members.Train
	cfg.Seed, cfg.Workers, cfg.CacheMB = seed, b.workers, b.cacheMB
	checkpoint := b.path(b.work, e, seed, "-members.ckpt")
	first, err := impute.CheckpointStep(checkpoint)
	if err != nil {
		return err
	}
	src, done, err := b.source(ctx, e.Partition, cfg, uint64(first)*uint64(cfg.Batch))
	if err != nil {
		return err
	}
	var c clock
	members, report, err := impute.TrainMembers(ctx, model, b.material, src, cfg, hooksOf[*impute.Members](b, e.Name+" members", checkpoint, &c))
	done()
	if err != nil {
		return err
	}
	defer members.Close()
	file := b.path(b.output, e, seed, "-members.onnx")
	data, err := members.Save(cfg.Side)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	r := result{Name: e.Name, Seed: seed, Method: e.Method, Partition: e.Partition, Training: c.training(members.Weights(), report, file)}
	for _, ode := range e.Members.ODEs {
		for _, mode := range e.Modes {
			r.Mode = mode
			if err := b.scoreMembers(ctx, model, members, drawing{e.Members, ode}, r); err != nil {
				return err
			}
		}
	}
	return nil
}

type drawing struct {
	plan *membersPlan
	ode  impute.ODE
}

// scoreMembers scores an ensemble about the one-step mean, and the mean of the
// ensemble itself in its place.
func (b *bench) scoreMembers(ctx context.Context, model *impute.Model, members *impute.Members, d drawing, r result) error {
	in, err := b.inputs(r.Mode, d.plan.Overlays)
	if err != nil {
		return err
	}
	said, err := model.Predict(ctx, in)
	if err != nil {
		return err
	}
	targets := make([]impute.Target, len(in))
	for i, s := range b.streams(len(in)) {
		targets[i] = impute.Target{Inputs: in[i], Prediction: said[i], Stream: s}
	}
	began := time.Now()
	drawn, err := members.Draw(ctx, targets, d.plan.Count, d.ode)
	if err != nil {
		return err
	}
	r.Seconds, r.Calls, r.Overlays = time.Since(began).Seconds(), d.ode.Calls(), len(in)
	for _, about := range []string{"mean of members", "one-step", "calibrated"} {
		answers := make([]answer, len(in))
		for i := range answers {
			answers[i] = answer{mean: said[i].Mean, sigma: said[i].Sigma, members: drawn[i]}
			if about == "mean of members" {
				answers[i].mean = meanOf(drawn[i])
			}
		}
		if about == "calibrated" {
			if answers, err = b.calibratedMembers(answers); err != nil {
				return err
			}
		}
		r.Variant = fmt.Sprintf("%d members, %d steps, %d jumps, second order %v, %s", d.plan.Count, d.ode.Steps, d.ode.Jumps, d.ode.SecondOrder, about)
		if r.Summary, err = b.score(answers); err != nil {
			return err
		}
		if err := b.append(r); err != nil {
			return err
		}
	}
	return nil
}

// calibratedMembers moves members to the one-step mean and widens them as the
// overlays of the other months ask for.
func (b *bench) calibratedMembers(answers []answer) ([]answer, error) {
	spread := make([]answer, len(answers))
	for i, a := range answers {
		spread[i] = answer{mean: a.mean, sigma: make([]float32, len(a.mean))}
		for k := range a.mean {
			_, spread[i].sigma[k] = impute.Spread(a.members, k)
		}
	}
	fitted, err := b.calibrated(spread)
	if err != nil {
		return nil, err
	}
	out := make([]answer, len(answers))
	for i, a := range answers {
		before, after := spread[i].sigma, fitted[i].sigma
		out[i] = answer{mean: a.mean, sigma: a.sigma, members: impute.Recentre(a.members, a.mean, b.overlays[i].Visible, func(k int) float32 {
			if before[k] == 0 {
				return 1
			}
			return after[k] / before[k]
		})}
	}
	return out, nil
}

func meanOf(members [][]float32) []float32 {
	out := make([]float32, len(members[0]))
	for _, m := range members {
		for i, v := range m {
			out[i] += v / float32(len(members))
		}
	}
	return out
}

// ofMembers returns answers that are the means of ensembles.
func ofMembers(drawn [][][]float32) []answer {
	out := make([]answer, len(drawn))
	for i, members := range drawn {
		out[i] = answer{mean: meanOf(members)}
		if len(members) > 1 {
			out[i].members = members
		}
	}
	return out
}

// samplerBatch is how many members the paper's samplers take through a network
// at a time: those of one overlay.
const samplerBatch = 8

// runSamplers scores the paper's samplers in the first mode.
func (b *bench) runSamplers(ctx context.Context, model *impute.Model, e experiment, r result) error {
	r.Mode = e.Modes[0]
	for _, plan := range e.Samplers {
		if err := b.scoreSampler(ctx, model, plan, r); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) scoreSampler(ctx context.Context, model *impute.Model, plan samplerPlan, r result) error {
	sampler, err := impute.SamplerOf(plan.Sampler)
	if err != nil {
		return err
	}
	if b.small == nil {
		cfg := impute.WorkshopConfig{Batch: samplerBatch, BFloat16: b.bfloat16, Shared: true}
		if b.small, err = impute.NewWorkshop(b.engine, cfg); err != nil {
			return err
		}
	}
	small := model.In(b.small)
	defer small.Close()
	in, err := b.inputs(r.Mode, plan.Overlays)
	if err != nil {
		return err
	}
	drawn := make([][][]float32, len(in))
	began := time.Now()
	for i, s := range b.streams(len(in)) {
		how := impute.Sampling{Sampler: sampler, Config: plan.Config, Contexts: impute.MasksOf(b.material.Train, b.overlays[i].Window, in[i].Visible)}
		d, err := small.Sample(ctx, in[i], how, s)
		if err != nil {
			return err
		}
		drawn[i], r.Calls = d.Members, d.Calls
	}
	c := plan.Config
	r.Seconds, r.Overlays = time.Since(began).Seconds(), len(in)
	r.Variant = fmt.Sprintf("%s, %d draws, %d steps, blend %s, scope %s", plan.Sampler, c.Draws, c.Steps, c.Blend, c.Scope)
	if r.Summary, err = b.score(ofMembers(drawn)); err != nil {
		return err
	}
	return b.append(r)
}

// scoreMissDiff samples a network that knows no partition: its diffusion over
// the whole sea, held to what is visible.
func (b *bench) scoreMissDiff(ctx context.Context, model *impute.Model, e experiment, r result) error {
	cfg := impute.DefaultSampler()
	cfg.Members, cfg.Steps, cfg.Blend, cfg.Scope = e.Ensemble, e.Steps, impute.Diffusion, impute.ScopeSea
	plan := samplerPlan{Sampler: "iterative", Config: cfg, Overlays: e.EnsembleOverlays}
	for _, mode := range e.Modes {
		r.Mode = mode
		if err := b.scoreSampler(ctx, model, plan, r); err != nil {
			return err
		}
	}
	return nil
}

// runDINDiff trains and scores the baseline of that name.
func (b *bench) runDINDiff(ctx context.Context, e experiment, seed uint64) error {
	cfg := impute.DINDiffConfig(e.Train)
	checkpoint := b.path(b.work, e, seed, ".ckpt")
	first, err := impute.CheckpointStep(checkpoint)
	if err != nil {
		return err
	}
	src, done, err := b.source(ctx, e.Partition, cfg, uint64(first)*uint64(cfg.Batch))
	if err != nil {
		return err
	}
	var c clock
	d, report, err := impute.TrainDINDiff(ctx, b.shop, b.material, src, cfg, hooksOf[*impute.DINDiff](b, e.Name, checkpoint, &c))
	done()
	if err != nil {
		return err
	}
	defer d.Close()
	r := result{Name: e.Name, Seed: seed, Method: e.Method, Partition: e.Partition, Training: c.training(d.Weights(), report, "")}
	for _, mode := range e.Modes {
		in, err := b.inputs(mode, e.EnsembleOverlays)
		if err != nil {
			return err
		}
		began := time.Now()
		drawn, err := d.Draw(ctx, in, b.streams(len(in)), e.Ensemble, e.Steps)
		if err != nil {
			return err
		}
		r.Mode, r.Calls, r.Seconds, r.Overlays = mode, e.Steps, time.Since(began).Seconds(), len(in)
		r.Variant = fmt.Sprintf("mean of %d, %d steps", e.Ensemble, e.Steps)
		if r.Summary, err = b.score(ofMembers(drawn)); err != nil {
			return err
		}
		if err := b.append(r); err != nil {
			return err
		}
	}
	return nil
}

// runClassifier trains P(query | context) and logs its Brier score on held-out
// overlays beside that of one probability for all.
func (b *bench) runClassifier(ctx context.Context, e experiment, seed uint64) error {
	cfg := impute.ReliabilityConfig(e.Train)
	src, done, err := b.source(ctx, e.Partition, cfg, 0)
	if err != nil {
		return err
	}
	c, report, err := impute.TrainReliability(ctx, b.shop, b.material, src, cfg, impute.Hooks[*impute.Reliability]{})
	done()
	if err != nil {
		return err
	}
	defer c.Close()
	data, err := c.Save(cfg.Side)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.path(b.output, e, seed, "-reliability.onnx"), data, 0o644); err != nil {
		return err
	}
	var probability, common []float64
	var happened []bool
	all, err := b.inputs(impute.Single, 0)
	if err != nil {
		return err
	}
	for _, in := range all {
		p, err := c.Probability(ctx, in)
		if err != nil {
			return err
		}
		for k, sea := range in.Sea {
			if sea && !in.Visible[k] {
				probability, happened = append(probability, float64(p[k])), append(happened, finite(in.Values[k]))
			}
		}
	}
	share := 0.0
	for _, h := range happened {
		if h {
			share += 1 / float64(len(happened))
		}
	}
	for range happened {
		common = append(common, share)
	}
	b.log.Info("reliability", "name", e.Name, "loss", report.Loss,
		"brier", skill.Brier(probability, happened), "brier_of_one_probability", skill.Brier(common, happened))
	return nil
}

func finite(v float32) bool { return v-v == 0 }
