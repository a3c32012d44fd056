package operate

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"lacuna/internal/figure"
	"lacuna/ledger"
)

// Pace is the speed at which the products of a dataset are made here.
type Pace struct {
	Each     time.Duration // time of one product; 0: none was made yet
	Measured int           // products that it was measured on
}

// paceProducts is the number of latest products that a pace is measured on, and
// paceLeast that from which those since a request tell more than those before.
const paceProducts, paceLeast = 60, 3

// pace returns the speed of a dataset: that of the products since a time, where
// there are some, because another model has another speed.
func (o *Operations) pace(ctx context.Context, dataset string, since time.Time) (Pace, error) {
	turns, err := o.book.Turns(ctx, dataset, paceProducts)
	if err != nil {
		return Pace{}, err
	}
	if p := paceOf(turns, since); p.Measured >= paceLeast {
		return p, nil
	}
	return paceOf(turns, time.Time{}), nil
}

// paceOf measures the pace of products that were stored after a time, from turns in
// the order in which they were stored.
//
// A dataset stores one product after the other, so that one begins when its granule
// is there and the product before is stored, whichever is later. Workers finish
// several at a time, so it is means over some in a row that count; their median leaves
// out those that waited for something else: a service that was down, or a pause.
func paceOf(turns []ledger.Turn, since time.Time) Pace {
	var took []time.Duration
	for i, turn := range turns {
		if i == 0 || turn.Stored.Before(since) {
			continue
		}
		took = append(took, turn.Stored.Sub(later(turn.Fetched, turns[i-1].Stored)))
	}
	if len(took) == 0 {
		return Pace{}
	}
	means := rowMeans(took, max(len(took)/paceRows, 1))
	slices.Sort(means)
	return Pace{Each: means[len(means)/2], Measured: len(took)}
}

// paceRows is the number of rows that products are cut into, each of which has a mean:
// of 60 they are twelve in a row, more than most sites have workers.
const paceRows = 5

// rowMeans returns the means of every n durations in a row.
func rowMeans(of []time.Duration, n int) []time.Duration {
	var means []time.Duration
	for i := 0; i+n <= len(of); i++ {
		var sum time.Duration
		for _, d := range of[i : i+n] {
			sum += d
		}
		means = append(means, sum/time.Duration(n))
	}
	return means
}

// Estimate is what a backfill will take, told before it begins.
type Estimate struct {
	Products int     `json:"products"` // to be made; of days that are not fetched yet, as many as the step of the series gives
	Each     float64 `json:"seconds_each"`
	Seconds  float64 `json:"seconds"`
	Measured int     `json:"measured"`               // products that the speed was measured on; 0: none, and no time is known but that of a rate
	Most     float64 `json:"most_an_hour,omitempty"` // the rate that it is held to; 0: none
	ByRate   bool    `json:"by_rate,omitempty"`      // the rate is slower than the machines
}

// Estimate tells what a backfill takes on the machines that fill now, at a rate, while
// nothing live comes in between.
func (o *Operations) Estimate(ctx context.Context, b Backfill, anHour float64) (Estimate, error) {
	if b.Asked.IsZero() { // not asked for yet
		b.Asked, b.Next = o.now(), b.From
	}
	rows, err := o.newestOf(ctx, b.Dataset, b.From, b.To)
	if err != nil {
		return Estimate{}, err
	}
	e := Estimate{}
	there := 0
	for _, g := range rows {
		remake, err := o.toRemake(ctx, b, g)
		switch {
		case err != nil:
			return e, err
		case waits(g) || b.Again && remake:
			e.Products++
		case g.State != ledger.Quarantined:
			there++
		}
	}
	if !b.Again {
		steps, err := o.steps(ctx, b.Dataset, b.From, b.To)
		if err != nil {
			return Estimate{}, err
		}
		e.Products = max(steps-there, e.Products)
	}
	pace, err := o.pace(ctx, b.Dataset, time.Time{})
	if err != nil {
		return Estimate{}, err
	}
	each := slower(pace.Each, anHour)
	e.Each, e.Measured, e.Most, e.ByRate = each.Seconds(), pace.Measured, anHour, each > pace.Each
	e.Seconds = float64(e.Products) * e.Each
	return e, nil
}

// EstimateBackfill is Estimate beside a daemon that may be running, or before the
// first start.
func (s Station) EstimateBackfill(ctx context.Context, b Backfill, anHour float64) (Estimate, error) {
	if _, err := s.dataset(b.Dataset); err != nil {
		return Estimate{}, err
	}
	scratch, err := os.MkdirTemp("", "lacuna-estimate-")
	if err != nil {
		return Estimate{}, fmt.Errorf("estimate: %w", err)
	}
	defer os.RemoveAll(scratch)
	book, err := s.Join(ctx, scratch)
	if err != nil {
		return Estimate{}, err
	}
	defer book.Close()
	return s.ops(book).Estimate(ctx, b, anHour)
}

// steps returns the number of fields that a dataset has from one day through
// another, by its usual step.
func (o *Operations) steps(ctx context.Context, dataset string, from, to time.Time) (int, error) {
	const oneDay = 24 * time.Hour
	step, err := Step(ctx, o.book, dataset)
	if step == 0 {
		step = oneDay
	}
	return max(int((to.Sub(from)+oneDay)/step), 0), err
}

// String says the estimate in a sentence without its end.
func (e Estimate) String() string {
	if e.ByRate {
		return fmt.Sprintf("%d products, about %s at the rate of %.4g an hour", e.Products, figure.Seconds(e.Seconds), e.Most)
	}
	if e.Measured == 0 {
		return fmt.Sprintf("%d products; how long they take is not known before the first is made", e.Products)
	}
	return fmt.Sprintf("%d products, about %s: %s each, as the last %d took", e.Products, figure.Seconds(e.Seconds), figure.Seconds(e.Each), e.Measured)
}
