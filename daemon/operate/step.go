package operate

import (
	"context"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/infer"
)

// stepFields is the number of latest fields from which a step is found.
const stepFields = 90

// Step returns the usual time from one field of a dataset to the next; 0 where too
// few are there to tell.
func Step(ctx context.Context, book *ledger.Ledger, dataset string) (time.Duration, error) {
	times, err := book.LatestTimes(ctx, dataset, stepFields)
	return infer.StepOf(times), err
}
