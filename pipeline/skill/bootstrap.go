package skill

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Loss is the contribution of one sample to a mean over pixels.
type Loss struct {
	Day    time.Time
	Sum    float64 // sum of the losses of all its pixels
	Pixels float64
}

// A Bootstrap draws blocks of days with replacement to estimate how far a mean
// would move with other days. Days of one block are drawn together, because
// weather and sea change slowly and errors persist from day to day.
type Bootstrap struct {
	Draws      int
	BlockDays  int     // length of a block of consecutive days
	Confidence float64 // confidence of the intervals, such as 0.95
	Seed       uint64
}

// DefaultBootstrap returns the default settings.
func DefaultBootstrap() Bootstrap {
	return Bootstrap{
		Draws:      4000, // a p-value of 0.05 is then known to 0.003
		BlockDays:  8,    // the e-folding time of chlorophyll anomalies on real data; differences of errors forget faster
		Confidence: 0.95,
		Seed:       1,
	}
}

// An Interval holds a mean with the confidence of the bootstrap.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Difference is the mean loss of one method less that of another on the same
// samples: negative where the first is better.
type Difference struct {
	Mean     float64  `json:"mean"`
	Base     float64  `json:"base,omitempty"` // mean loss of the other method
	Relative float64  `json:"relative"`       // Mean over Base; 0 if that is 0
	Interval Interval `json:"interval"`
	P        float64  `json:"p"` // two-sided probability of a difference as large by chance alone
	Samples  int      `json:"samples"`
	Days     int      `json:"days,omitempty"` // different days among the samples
	Blocks   int      `json:"blocks"`
}

// leastBlocks is the least number of blocks for a useful bootstrap: four have 35
// different draws.
const leastBlocks = 4

// leastBlockDays is the length down to which blocks are shortened where there
// are too few days for leastBlocks of them: differences of errors of two methods
// forget faster than the sea does, but not from one day to the next.
const leastBlockDays = 3

// LeastDays is the least number of consecutive days on which a difference can
// be told from chance.
const LeastDays = (leastBlocks-1)*leastBlockDays + 1

// TooFewDays says that a difference cannot be told from chance, however large it
// is.
type TooFewDays struct {
	Days, Blocks int // that there are
}

func (e *TooFewDays) Error() string {
	return fmt.Sprintf("%d days judge, which make %d blocks, and a difference can be told from chance from %d blocks on, which %d days in a row make: give more days",
		e.Days, e.Blocks, leastBlocks, LeastDays)
}

// Enough reports whether a difference on such days can be told from chance.
func (o Bootstrap) Enough(days []time.Time) bool {
	losses := make([]Loss, len(days))
	for i, d := range days {
		losses[i] = Loss{Day: d, Pixels: 1}
	}
	blocks, _ := o.enoughBlocks(losses)
	return len(blocks) >= leastBlocks
}

// Paired compares method a with method b, sample by sample. Both are pooled
// over pixels. Samples must be the same in the same order, which their days
// and pixels show. A TooFewDays says that there are too few of them.
func (o Bootstrap) Paired(a, b []Loss) (Difference, error) {
	if len(a) != len(b) {
		return Difference{}, fmt.Errorf("pair the losses: %d samples against %d", len(a), len(b))
	}
	for i := range a {
		if !a[i].Day.Equal(b[i].Day) || a[i].Pixels != b[i].Pixels {
			return Difference{}, fmt.Errorf("pair the losses: sample %d is %s with %g pixels against %s with %g",
				i, a[i].Day.Format(time.DateOnly), a[i].Pixels, b[i].Day.Format(time.DateOnly), b[i].Pixels)
		}
	}
	paired := make([]Loss, len(a))
	for i := range a {
		paired[i] = Loss{Day: a[i].Day, Sum: a[i].Sum - b[i].Sum, Pixels: a[i].Pixels}
	}
	blocks, width := o.enoughBlocks(paired)
	if len(blocks) < leastBlocks {
		return Difference{}, &TooFewDays{Days: countDays(paired), Blocks: len(blocks)}
	}
	means := o.means(blocks)
	widen(means, pooled(paired), width)
	d := Difference{Mean: pooled(paired), Base: pooled(b), Samples: len(a), Days: countDays(paired), Blocks: len(blocks), Interval: o.interval(means)}
	if d.Base != 0 {
		d.Relative = d.Mean / d.Base
	}
	d.P = chance(means, d.Mean)
	return d, nil
}

// Mean returns the interval of the pooled mean of losses, and false with fewer
// than four blocks of days.
func (o Bootstrap) Mean(losses []Loss) (Interval, bool) {
	blocks, width := o.enoughBlocks(losses)
	if len(blocks) < leastBlocks {
		return Interval{}, false
	}
	means := o.means(blocks)
	widen(means, pooled(losses), width)
	return o.interval(means), true
}

// Share is Mean of counts that are at most all their pixels.
func (o Bootstrap) Share(counts []Loss) (Interval, bool) {
	in, known := o.Mean(counts)
	return Interval{Low: max(in.Low, 0), High: min(in.High, 1)}, known
}

// enoughBlocks returns the blocks of losses, and the factor by which draws of
// them have to be wider. Where there are too few, blocks are as long as leastBlocks
// of them can be, down to leastBlockDays.
func (o Bootstrap) enoughBlocks(losses []Loss) (blocks []Loss, width float64) {
	blocks = o.blocks(losses)
	for o.BlockDays > leastBlockDays && len(blocks) < leastBlocks {
		o.BlockDays--
		blocks = o.blocks(losses)
	}
	if len(blocks) < leastBlocks {
		return blocks, 1
	}
	return blocks, o.width(len(blocks))
}

// width returns the factor that makes draws of n blocks as wide as they should
// be: a handful knows its own spread badly. It is Student's t over the normal
// quantile, times √(n/(n-1)) for the spread that such draws lack. Without it four
// blocks would take chance for a difference one time in five instead of one in
// twenty; of 23 it makes 8 % more.
func (o Bootstrap) width(n int) float64 {
	at := 0.5 + o.Confidence/2
	student := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(at)
	return student / distuv.UnitNormal.Quantile(at) * math.Sqrt(float64(n)/float64(n-1))
}

// widen moves the draws away from the mean by a factor.
func widen(means []float64, mean, factor float64) {
	for i, m := range means {
		means[i] = mean + factor*(m-mean)
	}
}

// countDays returns the number of days of losses.
func countDays(losses []Loss) int {
	days := map[time.Time]bool{}
	for _, l := range losses {
		days[l.Day.UTC().Truncate(day)] = true
	}
	return len(days)
}

// blocks sums the losses of each run of BlockDays days, counted from the first
// day, in order of time.
func (o Bootstrap) blocks(losses []Loss) []Loss {
	if o.BlockDays < 1 || o.Draws < 1 || !(o.Confidence > 0 && o.Confidence < 1) {
		panic("skill: bootstrap needs positive draws and days and a confidence between 0 and 1")
	}
	if len(losses) == 0 {
		return nil
	}
	first := slices.MinFunc(losses, func(a, b Loss) int { return a.Day.Compare(b.Day) }).Day.UTC().Truncate(day)
	byBlock := map[int64]*Loss{}
	for _, l := range losses {
		if l.Pixels == 0 {
			continue
		}
		k := int64(l.Day.Sub(first) / day / time.Duration(o.BlockDays))
		if byBlock[k] == nil {
			byBlock[k] = &Loss{Day: l.Day}
		}
		byBlock[k].Sum += l.Sum
		byBlock[k].Pixels += l.Pixels
	}
	keys := make([]int64, 0, len(byBlock))
	for k := range byBlock {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([]Loss, len(keys))
	for i, k := range keys {
		out[i] = *byBlock[k]
	}
	return out
}

const day = 24 * time.Hour

// means returns the pooled mean of each draw, in ascending order.
func (o Bootstrap) means(blocks []Loss) []float64 {
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	means := make([]float64, o.Draws)
	for d := range means {
		sum, pixels := 0.0, 0.0
		for range blocks {
			b := blocks[rng.IntN(len(blocks))]
			sum += b.Sum
			pixels += b.Pixels
		}
		means[d] = sum / pixels
	}
	slices.Sort(means)
	return means
}

// interval cuts off the same share of the sorted draws at both ends.
func (o Bootstrap) interval(means []float64) Interval {
	tail := (1 - o.Confidence) / 2
	return Interval{Low: quantile(means, tail), High: quantile(means, 1-tail)}
}

// chance returns how often a draw lies as far from the mean as the mean lies
// from zero: the draws, moved to a true difference of zero. The one added
// above and below keeps it above zero.
func chance(means []float64, mean float64) float64 {
	far := 0
	for _, m := range means {
		if math.Abs(m-mean) >= math.Abs(mean) {
			far++
		}
	}
	return float64(far+1) / float64(len(means)+1)
}

// quantile interpolates between the order statistics of sorted values.
func quantile(sorted []float64, q float64) float64 {
	pos := q * float64(len(sorted)-1)
	low := int(pos)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (pos-float64(low))*(sorted[high]-sorted[low])
}

func pooled(losses []Loss) float64 {
	sum, pixels := 0.0, 0.0
	for _, l := range losses {
		sum += l.Sum
		pixels += l.Pixels
	}
	return sum / pixels
}
