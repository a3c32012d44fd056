package version

import (
	"math"
	"testing"

	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

func TestTheSceneShowsTheWindowThatHidesMostAsItWasFilled(t *testing.T) {
	exam, _ := anExamOf(t, series(t), 20)
	gate := Gate{Rule: skill.DefaultRule(), Low: -12, High: 12}
	champion := answering(exam, fading(0.75))
	ruling, err := gate.Decide(t.Context(), exam, answering(exam, fading(0.4)), &champion, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := ruling.Scene
	if s == nil || s.BeforeBy != "the champion" {
		t.Fatalf("the scene is %+v", s)
	}
	var o samples.Overlay
	number, most := 0, 0
	for i := range exam.Cases() {
		if n := count(exam.Overlay(i).Scored); n > most {
			o, number, most = exam.Overlay(i), i, n
		}
	}
	if !s.Time.Equal(o.Time) || len(s.Lat) != o.Window.Height || len(s.Lon) != o.Window.Width {
		t.Errorf("the scene is of %v, the window that hides most of %v", s.Time, o.Time)
	}
	truth := exam.Mapped(number, o.Values)
	seen, hidden, after := s.Values(s.Seen), s.Values(s.Hidden), s.Values(s.After)
	step := 1.01 * (s.High - s.Low) / 254 // half of it, at the middle of a level, is the most that a level errs by
	physical := func(x float32) float64 {
		if s.Log10 {
			return math.Log10(float64(x))
		}
		return float64(x)
	}
	for cell := range o.Sea {
		given, scored := s.Seen[cell] != 0, s.Hidden[cell] != 0
		if given != o.Visible[cell] || scored != o.Scored[cell] || (s.Land[cell] != 0) == o.Sea[cell] {
			t.Fatalf("cell %d is given %v, hidden %v; in the exam %v, %v", cell, given, scored, o.Visible[cell], o.Scored[cell])
		}
		if given && !(math.Abs(physical(seen[cell])-float64(truth[cell])) <= step) {
			t.Fatalf("cell %d was given %v and shows %v", cell, truth[cell], physical(seen[cell]))
		}
		if scored && !(math.Abs(physical(hidden[cell])-float64(truth[cell])) <= step) {
			t.Fatalf("cell %d hid %v and shows %v", cell, truth[cell], physical(hidden[cell]))
		}
		if o.Sea[cell] && s.After[cell] == 0 || !o.Sea[cell] && !math.IsNaN(float64(after[cell])) {
			t.Fatalf("cell %d, sea %v, is filled with %v", cell, o.Sea[cell], after[cell])
		}
	}
	if !(s.AfterError > 0 && s.AfterError < s.BeforeError) {
		t.Errorf("the errors are %v before and %v after; those of the challenger were made half as large", s.BeforeError, s.AfterError)
	}
	if alone, err := gate.Decide(t.Context(), exam, champion, nil, nil); err != nil || alone.Scene.BeforeBy != "optimal interpolation" {
		t.Errorf("without a champion: %v, %+v", err, alone.Scene)
	}
}
