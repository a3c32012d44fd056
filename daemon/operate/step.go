package operate

import (
	"context"
	"slices"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/infer"
)

// Delays of the latest fields from which the usual one is found: enough to have
// seen a weekend.
const (
	delayFields  = 15
	fewestDelays = 10
)

// UsualDelay returns the longest time from a field of a dataset to its arrival
// among the latest ones, and false where these say nothing: too few, or as
// irregular as where an archive was fetched for the first time.
func UsualDelay(ctx context.Context, book *ledger.Ledger, dataset string, newest time.Time, step time.Duration) (time.Duration, bool, error) {
	delays, err := book.Delays(ctx, dataset, newest.Add(-delayFields*step), newest)
	if err != nil {
		return 0, false, err
	}
	delay, ok := usual(delays, step)
	return delay, ok, nil
}

// usual returns the longest of delays; false where they are too few, or spread by
// more than two steps.
func usual(delays []time.Duration, step time.Duration) (time.Duration, bool) {
	if len(delays) < fewestDelays || step <= 0 {
		return 0, false
	}
	least, most := slices.Min(delays), slices.Max(delays)
	return most, most-least <= 2*step
}

// stepFields is the number of latest fields from which a step is found.
const stepFields = 90

// Step returns the usual time from one field of a dataset to the next; 0 where too
// few are there to tell.
func Step(ctx context.Context, book *ledger.Ledger, dataset string) (time.Duration, error) {
	times, err := book.LatestTimes(ctx, dataset, stepFields)
	return infer.StepOf(times), err
}
