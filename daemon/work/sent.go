package work

import (
	"context"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/ledger"
)

// sentJob is a job under way.
type sentJob struct {
	id      string // of the job; a job that was dropped may still be answered
	granule ledger.Granule
	message jobs.Message
	began   time.Time
	score   *ledger.DueSkill // it is a score that is due; nil: a product
	job     fill.Job         // of a score: its method and settings, without its fields
	again   *again           // it is a reopened product; nil: none
}

// key returns the key of a job among those under way: a granule may be scored and
// filled again at a time.
func (j sentJob) key() int64 {
	if j.score != nil {
		return -j.score.ID
	}
	return j.granule.ID
}

// answer is the result of a job under way.
type answer struct {
	key int64
	jobs.Result
}

// uses reports whether the job was made with a granule of this hash, or has no use for
// one in this span of time.
func (j sentJob) uses(sha256 string, first, last time.Time, past, future time.Duration) bool {
	if last.Before(j.message.Time.Add(-past)) || first.After(j.message.Time.Add(future+j.granule.Last.Sub(j.granule.First))) {
		return true
	}
	for _, sum := range j.message.Objects() {
		if sum == sha256 {
			return true
		}
	}
	return false
}

// full reports whether no more jobs may be sent now.
func (w *Worker) full() bool {
	switch {
	case w.Remote == nil:
		return false
	case !w.away() && w.large:
		return len(w.sent) > 0
	}
	return len(w.sent) >= w.Remote.Most
}

// pending returns the first n granules that wait, less those under way.
func (w *Worker) pending(ctx context.Context, n int) ([]ledger.Granule, error) {
	all, err := w.Books.FirstPending(ctx, w.set.Name, n+len(w.sent))
	var waiting []ledger.Granule
	for _, g := range all {
		if _, away := w.sent[g.ID]; !away && len(waiting) < n {
			waiting = append(waiting, g)
		}
	}
	return waiting, err
}
