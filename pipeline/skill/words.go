package skill

import (
	"fmt"
	"math"
	"time"
)

// Words says how a loss compares with that of another method, such as "12 % less
// error than the champion on 31 days, 6 to 18 % less with 95 % confidence".
func (d Difference) Words(loss, other string, confidence float64) string {
	base := d.Base
	if base == 0 && d.Relative != 0 { // a difference that was kept before it had a base
		base = d.Mean / d.Relative
	}
	share := func(v float64) float64 { return 100 * v / base }
	if !(base > 0) {
		return fmt.Sprintf("the %s changes by %+.3g from that of %s, which is 0", loss, d.Mean, other)
	}
	text := fmt.Sprintf("%s %s than %s", moreOrLess(share(d.Mean)), loss, other)
	if d.Days > 0 {
		text += fmt.Sprintf(" on %d days", d.Days)
	}
	return fmt.Sprintf("%s, %s with %.0f %% confidence", text, between(share(d.Interval.Low), share(d.Interval.High)), 100*confidence)
}

// moreOrLess writes a change in per cent.
func moreOrLess(change float64) string {
	return perCent(change) + " % " + direction(change)
}

func direction(change float64) string {
	if change < 0 {
		return "less"
	}
	return "more"
}

// between writes a range of changes in per cent.
func between(low, high float64) string {
	switch {
	case high < 0:
		return fmt.Sprintf("%s to %s %% less", perCent(high), perCent(low))
	case low >= 0:
		return fmt.Sprintf("%s to %s %% more", perCent(low), perCent(high))
	}
	return fmt.Sprintf("between %s and %s", moreOrLess(low), moreOrLess(high))
}

// perCent writes the size of a change, with a decimal where it is small.
func perCent(change float64) string {
	const small = 9.95
	if size := math.Abs(change); size >= small {
		return fmt.Sprintf("%.0f", size)
	}
	return fmt.Sprintf("%.1f", math.Abs(change))
}

// rounded returns a time to three digits, as people read it.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
