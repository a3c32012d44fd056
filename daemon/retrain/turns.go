package retrain

import "time"

// turn is how long work that can wait goes on beside a training that is paused for it,
// before the training has as long for itself: short enough that both are seen to get
// on, long enough that what a pause costs does not count.
const turn = 10 * time.Second

// turns shares the time between a training and the work that can wait: products that
// are looked at again, older days, scores. Such work comes first too, but a backfill of
// years, or a small machine that is never done with it, would leave a training no time
// at all. Work that is urgent has no part in it: it pauses a training whenever it comes.
type turns struct {
	last    time.Time     // up to which all is counted
	patient int           // pieces of work that can wait, for which the training is paused
	owed    time.Duration // what the training has waited for them, and not had for itself since
	its     bool          // it is the training's turn
}

// count counts the time up to now, in which a training ran or not, and was paused or
// not.
func (t *turns) count(now time.Time, runs, paused bool) {
	past := now.Sub(t.last)
	t.last = now
	switch {
	case !runs:
		t.owed = 0
	case t.patient > 0:
		t.owed += past
	case !paused:
		t.owed = max(t.owed-past, 0)
	}
	t.its = t.owed >= turn || t.its && t.owed > 0
}
