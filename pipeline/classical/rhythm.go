package classical

import "time"

// stepsRemembered is how many steps of a series an anomaly is taken to last where
// nothing was tuned. Composites of eight days and of a month are means, and means
// of a time are like those of the time before and after.
const stepsRemembered = 1.5

// OfStep returns o for a series whose frames are a step apart: an e-folding time
// of five days would leave the frames of a monthly series without a neighbour. A
// step of a day or less leaves o as it is.
func (o OI) OfStep(step time.Duration) OI {
	o.Days = max(o.Days, stepsRemembered*step.Hours()/24)
	return o
}

// OfStep returns t for a series whose frames are a step apart, 0 for a day. Of a
// finer series a frame is hidden under the gaps of one twelve steps away, and at
// least a day: clouds of the same hour are others then, and an hourly series need
// not be twelve days long to be tuned.
func (t Tuning) OfStep(step time.Duration) Tuning {
	const day = 24 * time.Hour
	if step > 0 {
		t.Apart = min(t.Apart, max(12*step, day))
	}
	return t
}
