package infer

import (
	"cmp"
	"context"
	"time"

	"lacuna/pipeline/impute"
)

// Sampling says how the networks made an analysis.
type Sampling struct {
	Tier    Tier          // empty: they had no part in it
	Members int           // number of members that were drawn; 0: none
	Sampler string        // how, for people; empty: not at all
	Centre  impute.Centre // which of two means was published; empty: there is one only
	Follows Tier          // the better tier, for which this field cannot wait; empty: there is none
}

// Means are the two means that a model has of a field where enough members were
// drawn, in the space of the transform, whichever was published.
type Means struct{ OneStep, Members []float32 }

// of returns the mean at a centre.
func (m Means) of(c impute.Centre) []float32 {
	if c == impute.MembersMean {
		return m.Members
	}
	return m.OneStep
}

// tier returns the tier of the config, or else the best that is done by the
// deadline. Where that takes longer than the field may wait, it is the one that
// follows. The imputer has run already.
func (m *Model) tier(ctx context.Context, sub *preparedField, l layout, how fillOptions, draw drawOptions) (Sampling, error) {
	n := how.cfg.Network
	switch {
	case !m.members || n.Tier == "" && n.Deadline == 0 || len(l.tiles) == 0:
		return Sampling{Tier: cmp.Or(n.Tier, Fast)}, nil
	case n.Tier != "":
		return Sampling{Tier: n.Tier}, nil
	}
	cells := sub.grid.Len()
	known := Sampling{}
	if step := m.Speed(cells).Step; step > 0 {
		if known = how.pick(step, cells); known.Tier == Full || m.tried(cells) {
			return known, nil
		}
	}
	// Nothing was measured with this size of field, or when the machine was busier
	// than it may be now.
	step, err := m.step(ctx, sub, l, how, draw)
	s := how.pick(step, cells)
	m.trial(cells, s != known)
	return s, err
}

// trials say when the speed of a step is tried again: that takes as long as the rest of
// a field in the tier fast. After one that changed nothing it is tried half as often.
type trials struct{ fields, pause int }

// seldom is the longest pause between two trials, in fields.
const seldom = 16

// tried counts a field of a size, and reports whether the last trial with one is recent.
func (m *Model) tried(cells int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.trials[cells]
	t.fields++
	if t.fields > t.pause {
		return false
	}
	m.trials[cells] = t
	return true
}

// trial notes a trial, and whether it changed the tier.
func (m *Model) trial(cells int, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pause := min(max(2*m.trials[cells].pause, 1), seldom)
	if changed {
		pause = 1
	}
	if m.trials == nil {
		m.trials = map[int]trials{}
	}
	m.trials[cells] = trials{pause: pause}
}

// pick returns the sampling of a field where a step of a member takes so long per
// million cells.
func (h fillOptions) pick(step time.Duration, cells int) Sampling {
	n, s := h.cfg.Network, Speed{Step: step}
	best := PickTier(n.Deadline-h.now().Sub(h.began), s, cells, n.Members)
	if n.Prompt > 0 && s.Estimate(best.Recipe(n.Members), cells) > n.Prompt {
		return Sampling{Tier: Fast, Follows: best}
	}
	return Sampling{Tier: best}
}

// found notes what a trial says of the time of a step. A machine that turns out to be
// more than twice as fast as it was is taken at its word.
func (m *Model) found(cells int, step time.Duration) {
	m.mu.Lock()
	if was := m.speeds[cells]; perMillion(step, cells) < was.Step/2 {
		was.Step = 0
		m.speeds[cells] = was
	}
	m.mu.Unlock()
	m.measured(cells, Speed{Step: step})
}

// step measures the time of one step of one member per million cells, by a few
// steps of a few members.
func (m *Model) step(ctx context.Context, sub *preparedField, l layout, how fillOptions, draw drawOptions) (time.Duration, error) {
	cells := sub.grid.Len()
	draw.recipe = Recipe{Members: 2, ODE: impute.ODE{Steps: 3, Jumps: 1}}
	if l.size.batch > 1 { // the program of a batch takes long to compile: that of the draw that follows
		draw.recipe.Members = Full.Recipe(how.cfg.Network.Members).Members
	}
	var first, last time.Time
	draw.progress = func(done, _ int) {
		if last = how.now(); done == 1 { // which compiles the network and encodes the scene
			first = last
		}
	}
	if _, err := m.draw(ctx, sub, l, draw); err != nil {
		return 0, err
	}
	groups := (draw.recipe.Members + membersTogether - 1) / membersTogether
	steps := groups*draw.recipe.ODE.Calls() - 1 // of a group each
	one := last.Sub(first) / time.Duration(steps*min(draw.recipe.Members, membersTogether))
	m.found(cells, max(one, 1))
	return m.Speed(cells).Step, nil
}

// recipe returns what is drawn for a sampling, and says so in it.
func (h fillOptions) recipe(s *Sampling, can bool, calibrated impute.Centre) Recipe {
	tier := s.Tier
	r := tier.Recipe(h.cfg.Network.Members)
	if can && r.Members >= spreadMembers {
		s.Centre = cmp.Or(h.centre, calibrated, impute.OneStep)
	}
	if can && h.cfg.Members > r.Members {
		// Whatever the deadline: they were asked for. Mean and sigma stay those
		// of the tier.
		if tier == Fast {
			tier = Standard
		}
		r = tier.Recipe(h.cfg.Members)
	}
	s.Members, s.Sampler = r.Members, r.Sampler()
	return r
}
