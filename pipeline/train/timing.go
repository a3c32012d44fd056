package train

import (
	"context"
	"time"
)

// Time returns how long the step of a task takes where its batch is on the
// device already, the mean over so many steps: a lower bound for that of a Run.
func Time(ctx context.Context, step *Step, t Task, steps int) (time.Duration, error) {
	if err := step.Start(t.Layout.Init(t.Seed)); err != nil {
		return 0, err
	}
	l := &loader{backend: step.backend, task: t}
	b, err := l.make(ctx, nil, 0)
	defer release(b.tensors)
	if err != nil {
		return 0, err
	}
	const warm = 5 // steps that compile, and settle clocks
	var began time.Time
	for i := range warm + steps {
		if i == warm {
			began = time.Now()
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := step.Run(t.inputs(b)...); err != nil {
			return 0, err
		}
	}
	return time.Since(began) / time.Duration(max(steps, 1)), nil
}
