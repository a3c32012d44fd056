package measure

import (
	"fmt"

	"lacuna/daemon/retrain"
	"lacuna/modelstore"
	"lacuna/pipeline/lab/tables"
)

// keepOff makes a table use the calendar of a version that is a row of it, and
// leave out the days that it has learned from or was chosen by. A version that
// does not say its days is judged as one that is trained here.
func keepOff(job *tables.Job, v *modelstore.Version, variable string) error {
	calendar, seen, err := retrain.Known(v.Card, job.Series, variable)
	if err != nil {
		return fmt.Errorf("days of version %s: %w", v.ID, err)
	}
	if len(job.Calendar.Intervals) == 0 {
		job.Calendar = calendar
	}
	job.Seen = append(job.Seen, seen...)
	return nil
}
