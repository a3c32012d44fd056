package infer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/noise"
)

// Details are what else is known of a filled field, cell by cell. They are
// made on demand.
type Details struct {
	// Members are complete fields that could be the truth, in physical units,
	// NaN on land. Nil where none were drawn.
	Members [][]float32
	// Reliability is P(query | context): how likely the cell would have been
	// one to learn from, given what is visible. A heuristic and no uncertainty.
	// Nil where the model does not have it.
	Reliability []float32
	// DistanceKM is the distance to the nearest observation of the same field,
	// as cells times the step of the grid, and DistanceDays that to the nearest
	// observation of the cell in time; 0 at observed cells, and +Inf and NaN
	// where there is none.
	DistanceKM, DistanceDays []float32
}

// A filling is what the networks say of a field, in the space of the
// transform.
type filling struct {
	estimate classical.Estimate
	members  [][]float32
	details  *Details
	tier     Tier
	took     Timing
}

// Timing is where the time of a field went.
type Timing struct {
	Analysis time.Duration `json:"analysis"` // scaling, composites and optimal interpolation
	Look     time.Duration `json:"look"`     // the imputer, over all windows
	Members  time.Duration `json:"members"`
	// Network is how much of Look and Members the networks were at work, with
	// the encoding of what goes in; the rest is cutting out and blending.
	Network time.Duration `json:"network"`
	Windows int           `json:"windows"` // that had something to fill
}

// fill fills frame target of s, which holds all that may be seen.
func (m *Model) fill(ctx context.Context, s classical.Series, target int, how manner) (filling, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	how.progress = forward(how.progress)
	began := how.now()
	sub, err := m.prepare(s, target, how.part(0, 300))
	if err != nil {
		return filling{}, err
	}
	analysis := how.now().Sub(began)
	m.measured(&m.speed.Analysis, analysis, s.Grid.Len())
	if err := ctx.Err(); err != nil {
		return filling{}, err
	}
	for size := m.size(how.cfg.Network); ; {
		out, err := m.run(ctx, sub, size, how, began)
		out.took.Analysis = analysis
		if !errors.Is(err, engine.ErrOutOfMemory) {
			return out, err
		}
		smaller, ok := m.shrink(size)
		if !ok {
			return out, fmt.Errorf("a window of %d x %d cells is the smallest: %w", size.window, size.window, err)
		}
		size = smaller
	}
}

// manner says how a field is filled.
type manner struct {
	cfg      Config
	now      func() time.Time
	progress func(done, total int) // of a thousand
}

// part returns the progress of a part of the work, from and to in thousandths.
func (h manner) part(from, to int) func(done, total int) {
	return func(done, total int) { h.progress(from+done*(to-from)/max(total, 1), 1000) }
}

// forward returns a progress that never goes back, whatever is done twice.
func forward(progress func(done, total int)) func(done, total int) {
	furthest := 0
	return func(done, total int) {
		if done > furthest {
			furthest = done
			progress(done, total)
		}
	}
}

// run asks the networks, in windows of a size.
func (m *Model) run(ctx context.Context, sub *subject, s size, how manner, began time.Time) (filling, error) {
	l := newLayout(sub, s, how.cfg.Network.OverlapCells)
	cells := sub.grid.Len()
	looked := how.now()
	m.busy = &busyTime{now: how.now}
	said, err := m.look(ctx, sub, l, how.part(300, 400))
	if err != nil {
		return filling{}, err
	}
	out := filling{took: Timing{Look: how.now().Sub(looked), Windows: len(l.tiles)}}
	m.measured(&m.speed.Look, out.took.Look, cells)
	out.tier = m.tier(how, how.now().Sub(began), cells)
	recipe := out.tier.Recipe(how.cfg.Network.Members)
	var members [][]float32
	if recipe.Members > 0 {
		drawn := how.now()
		members, err = m.draw(ctx, sub, l, drawing{recipe: recipe, said: said, noise: m.noise(sub, how.cfg), progress: how.part(400, 1000)})
		if err != nil {
			return filling{}, err
		}
		out.took.Members = how.now().Sub(drawn)
		m.measured(&m.speed.Step, out.took.Members, cells*recipe.Members*recipe.ODE.Calls())
	}
	out.took.Network = m.busy.total
	m.publish(&out, sub, said, members)
	if how.cfg.Details {
		out.details, err = m.detail(ctx, sub, l)
	}
	return out, err
}

// tier returns the tier of the config, or the best that is done by the
// deadline. The imputer has looked already; until members were drawn once,
// their step is taken to cost what the look did.
func (m *Model) tier(how manner, spent time.Duration, cells int) Tier {
	n := how.cfg.Network
	switch {
	case !m.members:
		return Fast
	case n.Tier != "":
		return n.Tier
	case n.Deadline == 0:
		return Fast
	}
	s := m.Speed()
	if s.Step == 0 {
		s.Step = s.Look
	}
	return PickTier(n.Deadline-spent, Speed{Step: s.Step}, cells, n.Members)
}

// noise returns where the members' noise comes from: the seed, the model and
// the time of the field.
func (m *Model) noise(sub *subject, cfg Config) noise.Stream {
	return noise.New(cfg.Network.Seed, m.version.Name, sub.time.UTC().Format(time.RFC3339Nano), "members")
}

// spreadMembers is how many members it takes for their spread to be the
// uncertainty: the standard deviation of ten numbers is known to a quarter,
// that of four to two fifths. With fewer it stays that of the imputer.
const spreadMembers = 10

// publish calibrates and brings everything to the space of the transform.
// Cells that the model was never asked about in training stay unsaid.
func (m *Model) publish(out *filling, sub *subject, said impute.Prediction, members [][]float32) {
	n := len(sub.hidden)
	mean, sigma := said.Mean, make([]float32, n)
	for i := range sigma {
		sigma[i] = m.version.Calibration.Apply(said.Sigma[i], sub.distance[i], sub.inputs.DayOfYear)
	}
	if len(members) > 0 {
		middle, sd := meanOf(members)
		for i := range n {
			factor := m.version.MembersCalibration.Apply(1, sub.distance[i], sub.inputs.DayOfYear)
			for _, x := range members {
				x[i] = sub.scaling.Inverse(middle[i]+factor*(x[i]-middle[i]), i)
			}
			if len(members) >= spreadMembers {
				sigma[i] = factor * sd[i]
			}
		}
		if m.version.MeanOfMembers {
			mean = middle
		}
		out.members = members
	}
	out.estimate = classical.Estimate{Mean: make([]float32, n), Sigma: make([]float32, n)}
	for i := range n {
		out.estimate.Mean[i] = sub.scaling.Inverse(mean[i], i)
		out.estimate.Sigma[i] = float32(float64(sigma[i]) * sub.scaling.Std)
		if q := m.version.Query; !sub.hidden[i] || q != nil && q[i] == 0 {
			out.estimate.Mean[i], out.estimate.Sigma[i] = field.NaN(), field.NaN()
		}
	}
}

// detail measures how far observations are, and asks how reliable cells are.
func (m *Model) detail(ctx context.Context, sub *subject, l layout) (*Details, error) {
	n := len(sub.hidden)
	d := &Details{DistanceKM: make([]float32, n), DistanceDays: make([]float32, n)}
	step := float32(sub.grid.StepKM())
	for i := range n {
		d.DistanceKM[i] = sub.distance[i] * step
		before, after := daysOf(sub.inputs.Last.Freshness[i]), daysOf(sub.inputs.Next.Freshness[i])
		switch {
		case sub.inputs.Visible[i]:
			d.DistanceDays[i] = 0
		case !(before > after): // also where there is none after
			d.DistanceDays[i] = before
		default:
			d.DistanceDays[i] = after
		}
		if !finite(d.DistanceDays[i]) && finite(after) {
			d.DistanceDays[i] = after
		}
	}
	if m.reliability == nil {
		return d, nil
	}
	all := l.blend()
	for _, at := range l.tiles {
		p, err := m.reliability(ctx, sub.cut(l, at))
		if err != nil {
			return nil, err
		}
		all.add(at, p)
	}
	d.Reliability = all.sum
	return d, nil
}

// busyTime adds up the time in which at least one call is under way.
type busyTime struct {
	now   func() time.Time
	mu    sync.Mutex // guards the rest
	calls int
	since time.Time
	total time.Duration
}

func (b *busyTime) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == 0 {
		b.since = b.now()
	}
	b.calls++
}

func (b *busyTime) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls--; b.calls == 0 {
		b.total += b.now().Sub(b.since)
	}
}
