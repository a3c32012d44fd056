package tables

import "lacuna/pipeline/samples"

// split puts the days of the series on their sides: by the calendar of the job,
// without those that a stored version has seen.
func (r *run) split() error {
	calendar := samples.Extend(r.job.Calendar, r.job.Series.Days, r.s.Split)
	sides, err := samples.Assign([]samples.Series{r.job.Series}, []samples.Calendar{calendar}, r.job.Seen)
	if err != nil {
		return err
	}
	r.train, r.choose, r.held, r.days = sides.Train, sides.Choose, sides.Judge, sides.Days[0]
	if r.s.Choosing {
		r.held = sides.Choose
	}
	return nil
}
