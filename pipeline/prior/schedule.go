package prior

import (
	"fmt"
	"math"
)

// Classes is the number of classes of a cell, gap and observed, and the scale
// K of the logits that a class is written as: x₀ = K·e.
const Classes = 2

// A Level is how far a walk has come from noise to a mask: x = α·x₀ + σ·ε.
type Level struct {
	T            float64 // 1 is noise, 0 the mask
	Alpha, Sigma float64
}

// LogSNR returns ln(α/σ).
func (l Level) LogSNR() float64 { return math.Log(l.Alpha / l.Sigma) }

// Gain returns 2α/σ², the factor from the difference of a cell's two channels to
// its evidence for "observed", in logits. Where σ is zero it is that of a schedule
// whose evidence is the difference itself at the start, and the largest
// number that matters at the end.
func (l Level) Gain() float64 {
	const most = 1e6 // a difference of 4 is then certainty many times over
	switch {
	case l.Sigma > 0:
		return min(Classes*l.Alpha/(l.Sigma*l.Sigma), most)
	case l.Alpha > 0:
		return most
	}
	return 1
}

// A Schedule says how much of the mask and how much noise there is at each
// time in 0..1.
type Schedule interface {
	Name() string
	At(t float64) Level
	// TimeOf returns the time at which ln(α/σ) has a value, 0 or 1 where it
	// never has.
	TimeOf(logSNR float64) float64
}

// Names of the schedules.
const (
	CosineSchedule   = "vp-cosine"
	AccuracySchedule = "bfn-accuracy"
)

// ScheduleOf returns the schedule of a name.
func ScheduleOf(name string) (Schedule, error) {
	switch name {
	case CosineSchedule:
		return Cosine{}, nil
	case AccuracySchedule:
		return Accuracy{Final: DefaultFinalAccuracy}, nil
	}
	return nil, fmt.Errorf("schedule is %q, must be %s or %s", name, CosineSchedule, AccuracySchedule)
}

// Cosine keeps the variance: α = cos(πt/2), σ = sin(πt/2).
type Cosine struct{}

// Name implements Schedule.
func (Cosine) Name() string { return CosineSchedule }

// At implements Schedule.
func (Cosine) At(t float64) Level {
	sigma, alpha := math.Sincos(math.Pi / 2 * t)
	return Level{T: t, Alpha: max(alpha, 0), Sigma: sigma}
}

// TimeOf implements Schedule.
func (Cosine) TimeOf(logSNR float64) float64 {
	return 2 / math.Pi * math.Atan(math.Exp(-logSNR))
}

// Accuracy is the schedule of a Bayesian Flow Network on discrete data: the
// accuracy β grows as β₁(1-t)², α = β, σ = sqrt(Kβ). It starts at x = 0, not
// at noise. See Graves, Srivastava, Atkinson and Gomez, Bayesian Flow Networks
// (2023), section 6, whose latent differs from ours by the same number in all
// classes, and whose time runs the other way.
type Accuracy struct {
	Final float64 // β₁
}

// DefaultFinalAccuracy leaves a cell undecided once in 10⁸: the difference of
// its channels is then 2β₁ ± 2·sqrt(β₁).
const DefaultFinalAccuracy = 32

// Name implements Schedule.
func (Accuracy) Name() string { return AccuracySchedule }

// At implements Schedule.
func (a Accuracy) At(t float64) Level {
	beta := a.Final * (1 - t) * (1 - t)
	return Level{T: t, Alpha: beta, Sigma: math.Sqrt(Classes * beta)}
}

// TimeOf implements Schedule. Here α/σ = sqrt(β/K).
func (a Accuracy) TimeOf(logSNR float64) float64 {
	return max(0, 1-math.Sqrt(Classes*math.Exp(2*logSNR)/a.Final))
}

// Spacing says how the steps of a walk are spread over time.
type Spacing string

// The spacings.
const (
	LogSNR Spacing = "log-snr" // even in ln(α/σ)
	Even   Spacing = "even"    // even in time, as in Ma, Zhou and Yu
)

// Range of ln(α/σ) on 64×64 cells. How much of a mask is observed is decided
// where α·sqrt(d) ≈ 1, at -4.2; even steps in time jump over it, and every
// sample gets nearly the same coverage. Beyond 3 every cell is decided.
const (
	logSNRFirst = -6.0
	logSNRLast  = 3.0
	cells64     = 64 * 64
)

// LogSNRRange returns the range of ln(α/σ) in which steps and half of the training times lie for masks
// of d cells: the more cells, the earlier their mean is known.
func LogSNRRange(cells int) (first, last float64) {
	return logSNRFirst - math.Log(float64(cells)/cells64)/2, logSNRLast
}

// Levels returns the steps+1 levels of a walk over masks of d cells. The
// network is asked at all but the last, which is the mask.
func (s Spacing) Levels(schedule Schedule, steps, cells int) []Level {
	out := make([]Level, steps+1)
	first, last := LogSNRRange(cells)
	// A schedule that ends before the last level is walked to its own end.
	last = min(last, schedule.At(0).LogSNR())
	for i := range steps {
		t := 1 - float64(i)/float64(steps)
		if s == LogSNR {
			t = schedule.TimeOf(first + (last-first)*float64(i)/float64(max(steps-1, 1)))
		}
		out[i] = schedule.At(t)
	}
	out[steps] = schedule.At(0)
	return out
}

// Order is how a step of a walk extrapolates the prediction over its length.
type Order int

// The orders. Both run the network once a step.
const (
	FirstOrder  Order = 1 // constant, as at its start: DDIM, as in Ma, Zhou and Yu
	SecondOrder Order = 2 // changing on as in the step before: half the steps, or fewer, for the same masks
)

func (o Order) validate() error {
	if o != FirstOrder && o != SecondOrder {
		return fmt.Errorf("order is %d, must be %d or %d", o, FirstOrder, SecondOrder)
	}
	return nil
}

func (s Spacing) validate() error {
	if s != LogSNR && s != Even {
		return fmt.Errorf("spacing is %q, must be %q or %q", s, LogSNR, Even)
	}
	return nil
}
