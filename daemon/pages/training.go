package pages

import (
	"lacuna/daemon/retrain"
	"lacuna/ops"
)

// noteTraining adds how the training stands to the row of a dataset.
func (p Pages) noteTraining(row *ops.Dataset) {
	if p.Settings.Train.Store == "" {
		return
	}
	all, err := p.Settings.Trainings(row.Name, p.Now())
	if err != nil { // an alarm, and no reason to show nothing at all
		row.Training, row.TrainFailed = "not known", err.Error()
		return
	}
	r := all[0]
	row.Training, row.TrainFailed, row.Train = r.Words, r.Failure, trainingOf(r)
}

// trainingOf returns a report as the page shows it.
func trainingOf(r retrain.Report) *ops.Training {
	t := &ops.Training{
		State: r.State, Begun: r.Begun, Since: r.Since, Phase: r.Phase, Schedule: r.Schedule, Next: r.Next, Window: r.Window,
		Seen: r.Seen, NoGPU: r.NoGPU,
	}
	if r.Steps > 0 {
		t.Progress = float64(r.Step) / float64(r.Steps)
	}
	if l := r.Last; l != nil {
		t.Refusals = l.Refusals
		t.Last = &ops.Outcome{State: l.State, Ended: l.Ended, Version: l.Version, Why: l.Why, Reasons: l.Reasons}
	}
	return t
}
