package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestPhasesWriteALineAtTheBeginningNowAndThenAndForAScore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewPhases(&out)
		score := 0.25
		for step := range 11 {
			s := PhaseStep{Phase: "imputer", Step: step, Steps: 20, Loss: 0.5}
			if step == 7 {
				s.Score = &score
			}
			p.Step(s)
			time.Sleep(time.Second)
		}
		p.Step(PhaseStep{Phase: "members", Step: 2, Steps: 2})
		p.Finish()
		want := `imputer 0/20  loss 0.5  
imputer 5/20  loss 0.5  15 s left
imputer 7/20  loss 0.5  held-out 0.25  13 s left
members 2/2  
`
		if out.String() != want {
			t.Errorf("the lines are\n%s\nwant\n%s", &out, want)
		}
	})
}

func TestPhasesTellTheTimeLeftWhereItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		p := TellPhases(func(_ PhaseStep, left time.Duration) { told = append(told, left) })
		p.Step(PhaseStep{Phase: "prior", Step: 40, Steps: 100}) // resumed
		time.Sleep(10 * time.Second)
		p.Step(PhaseStep{Phase: "prior", Step: 60, Steps: 100})
		if len(told) != 2 || told[0] != 0 || told[1] != 20*time.Second {
			t.Errorf("the time left was told as %v, want 0 and then 20s", told)
		}
	})
}
