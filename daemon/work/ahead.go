package work

import "context"

// away reports whether other machines fill the granules.
func (w *Worker) away() bool { return w.Remote != nil && w.Remote.Drop == nil }

// ahead reports whether granules of the backfill lane are filled beside this worker,
// which prepares the next ones meanwhile.
func (w *Worker) ahead() bool { return w.Remote != nil && w.Remote.Drop != nil }

// restAway says that the worker waits for other machines. A job beside it beats for it:
// one that hangs must not go unnoticed.
func (w *Worker) restAway() {
	if w.away() {
		w.Heartbeat.Rest()
	}
}

// largeCells is the size of granules of which one is filled at a time: three of them
// would take gigabytes.
const largeCells = 4 << 20

// large reports whether a scene is too large for another beside it.
func (s scene) large() bool {
	return len(s.granule.Fields)*s.granule.Fields[0].Grid.Len() > largeCells
}

// makeWay clears the machine for a granule of the live lane: what is filled beside is
// dropped, and prepared again afterwards. Where granules keep coming it is waited for
// now and then, or it would never be done.
func (w *Worker) makeWay(ctx context.Context) error {
	if !w.ahead() || len(w.sent) == 0 {
		return nil
	}
	if w.gaveWay++; w.gaveWay > mostInterrupted {
		return w.awaitAll(ctx, func(sentJob) bool { return true })
	}
	return w.drop()
}

// drop ends the jobs beside the worker and forgets them.
func (w *Worker) drop() error {
	if !w.ahead() {
		return nil
	}
	clear(w.sent)
	err := w.Remote.Drop()
	for {
		select {
		case <-w.answers: // of a job that had ended before
		default:
			return err
		}
	}
}
