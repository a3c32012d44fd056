package retrain

import (
	"testing"
	"time"
)

// A machine that is never done with what can wait leaves a training half of the time
// that is urgent to nobody, in turns that are seen.
func TestATrainingHasItsTurnBesideABackfillWithoutEnd(t *testing.T) {
	const (
		step   = 100 * time.Millisecond
		minute = 60 * time.Second
	)
	now := time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		task   time.Duration // how long a task that can wait takes
		urgent bool          // every third second is urgent
		want   time.Duration // what the training has of ten minutes
	}{
		"short tasks":             {task: time.Second, want: 5 * minute},
		"a task longer than that": {task: 40 * time.Second, want: 5 * minute},
		"beside what is urgent":   {task: time.Second, urgent: true, want: 5 * minute * 2 / 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := turns{last: now}
			var had, left, longest, waited time.Duration
			for at := time.Duration(0); at < 10*minute; at += step {
				urgent := tt.urgent && at/time.Second%3 == 0
				s.count(now.Add(at), true, urgent || s.patient > 0)
				switch {
				case urgent && s.patient == 0:
				case left > 0:
					if left -= step; left == 0 {
						s.patient = 0
					}
				case !s.its:
					s.patient, left = 1, tt.task
				}
				if waited += step; !urgent && s.patient == 0 {
					had, waited = had+step, 0
				}
				longest = max(longest, waited)
			}
			if off := had - tt.want; off.Abs() > minute/2 {
				t.Errorf("the training had %v of ten minutes, want %v", had, tt.want)
			}
			if most := turn + tt.task + 3*time.Second; longest > most {
				t.Errorf("it waited for %v without a break, want at most %v", longest, most)
			}
		})
	}
}

// What went on before a training is not owed to it, nor what was urgent.
func TestATrainingIsOwedNothingButItsTurn(t *testing.T) {
	now := time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)
	s := turns{last: now, patient: 1}
	s.count(now.Add(time.Hour), false, true)
	if s.its || s.owed != 0 {
		t.Fatalf("owed %v before it has begun", s.owed)
	}
	s.patient = 0
	s.count(now.Add(2*time.Hour), true, true)
	if s.its || s.owed != 0 {
		t.Fatalf("owed %v for what was urgent", s.owed)
	}
	s.patient = 1
	s.count(now.Add(2*time.Hour+turn), true, true)
	if !s.its || s.owed != turn {
		t.Fatalf("owed %v after %v, its turn is %v", s.owed, turn, s.its)
	}
	s.patient = 0
	s.count(now.Add(2*time.Hour+turn+turn/2), true, false)
	if !s.its || s.owed != turn/2 {
		t.Fatalf("owed %v in the middle of its turn, which is its is %v", s.owed, s.its)
	}
	s.count(now.Add(2*time.Hour+2*turn), true, false)
	if s.its || s.owed != 0 {
		t.Fatalf("owed %v after its turn", s.owed)
	}
	s.patient = 1
	s.count(now.Add(3*time.Hour), true, true)
	s.count(now.Add(3*time.Hour), false, true)
	if s.its || s.owed != 0 {
		t.Fatalf("owed %v after it has ended", s.owed)
	}
}
