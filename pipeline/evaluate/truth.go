package evaluate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Truth is a series without gaps of the sea that an exam is about: simulated,
// or of a model. With it, methods can be scored where clouds really were.
type Truth struct {
	byDay map[string][]float32 // normalised anomalies of whole maps, by UTC day
}

// NewTruth returns the truth of held-out days from fields in physical units.
// Days that are not held out are ignored.
func NewTruth(fields []field.Field, held samples.HeldOut) (Truth, error) {
	t := Truth{byDay: map[string][]float32{}}
	for _, f := range fields {
		if !f.Grid.Same(held.Grid()) {
			return t, fmt.Errorf("the truth of %s is on another grid, %v, than the data, %v", utcDay(f.Time), f.Grid, held.Grid())
		}
		values := make([]float32, len(f.Values))
		held.Transform().Forward(values, f.Values)
		t.byDay[utcDay(f.Time)] = held.Scaling().Normalised(values)
	}
	return t, nil
}

func utcDay(t time.Time) string { return t.UTC().Format(time.DateOnly) }

var errNoTruth = errors.New("the truth covers none of the held-out days, or has no value at the scored cells")

// AgainstTruth returns the exam with the same cases, scored against the truth
// instead of noisy observations.
func (e *Exam) AgainstTruth(t Truth) (*Exam, error) {
	return e.on(t, func(o *samples.Overlay) {})
}

// OnRealGaps returns the exam on the same windows with all observations visible
// and the true gaps scored.
func (e *Exam) OnRealGaps(t Truth) (*Exam, error) {
	return e.on(t, func(o *samples.Overlay) {
		o.Visible = o.Observed()
		o.Scored = make([]bool, len(o.Visible))
		for k, sea := range o.Sea {
			o.Scored[k] = sea && !o.Visible[k]
		}
	})
}

// on returns the exam with its overlays changed and their scored cells those of
// the truth. Cells without a true value are not scored.
func (e *Exam) on(t Truth, change func(*samples.Overlay)) (*Exam, error) {
	var overlays []samples.Overlay
	for _, o := range e.overlays {
		day := t.byDay[utcDay(o.Time)]
		if day == nil {
			continue
		}
		change(&o)
		truth := e.held.CutMap(day, o.Window)
		values, scored := slices.Clone(o.Values), make([]bool, len(o.Scored))
		for k := range scored {
			if scored[k] = o.Scored[k] && truth[k] == truth[k]; scored[k] { // not NaN
				values[k] = truth[k]
			}
		}
		o.Values, o.Scored = values, scored
		if skill.Usable(o.Visible, o.Scored) {
			overlays = append(overlays, o)
		}
	}
	if len(overlays) == 0 {
		return nil, errNoTruth
	}
	return NewExam(e.held, e.around, overlays, e.mode)
}
