package jobs

import (
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
)

// What is kept of the two means are their errors on the hidden cells alone.
func TestMeansAreScoredOnHiddenCellsOnly(t *testing.T) {
	truth := field.Field{Time: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), Values: []float32{1, 2, 3, 4}}
	s := Scale{Normalisation: field.Normalisation{Mean: 9, Std: 2}}
	of := &infer.Means{OneStep: []float32{100, 4, 3, field.NaN()}, Members: []float32{100, 2, 7, 4}}
	got := s.means(of, Trial{Truth: truth, Scored: field.Mask{false, true, true, true}})
	// By hand, in standard deviations: one step 1 and 0, members 0 and 2.
	if want := (Means{Day: truth.Time, OneStep: 0.5, Members: 2, Pixels: 2}); got == nil || *got != want {
		t.Errorf("scored %+v, want %+v", got, want)
	}
	if s.means(nil, Trial{}) != nil || s.means(of, Trial{Truth: truth, Scored: make(field.Mask, 4)}) != nil {
		t.Error("nothing was scored, and something is kept")
	}
}
