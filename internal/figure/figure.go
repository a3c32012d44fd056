// Package figure writes numbers for people, each kind of them in one way:
// durations, sizes, shares, changes and counts. Whatever a person reads (a
// command's output, a page, an alarm, a log line's sentence) has its numbers from
// here; JSON, metrics and configurations have theirs in full.
//
// The package does not know what a number is of.
package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// None stands for a number that is not there.
const None = "–"

// Duration writes a time span with about two digits: 350 ms, 1.9 s, 42 s, 12 min,
// 1.7 h, 31 h, 3 days.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	switch seconds := d.Seconds(); {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return "below 1 ms"
	case d < 999500*time.Microsecond: // the rest rounds to 1 s
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	case seconds < 100:
		return short(seconds) + " s"
	case seconds < 100*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 48*3600:
		return short(seconds/3600) + " h"
	default:
		return fmt.Sprintf("%.0f days", seconds/86400)
	}
}

// Seconds writes a number of seconds as Duration does.
func Seconds(s float64) string {
	if math.IsNaN(s) || math.Abs(s) > math.MaxInt64/float64(time.Second) {
		return None
	}
	return Duration(time.Duration(s * float64(time.Second)))
}

// short writes one decimal below ten, and none above or where it is zero.
func short(x float64) string {
	if x >= 9.95 {
		return fmt.Sprintf("%.0f", x)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}

// Ago writes the age of t, as coarsely as people do.
func Ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < time.Second:
		return "just now"
	default:
		return Duration(d) + " ago"
	}
}

// Bytes writes a size in powers of thousand: 512 B, 12.3 kB, 4.56 GB.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	const prefixes = "kMGTP"
	value, unit := float64(n)/1000, 0
	for value >= 999.5 && unit < len(prefixes)-1 {
		value /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %cB", value, prefixes[unit])
}

// Percent writes a share. What is all but complete is not complete, and what is
// all but nothing is not nothing: neither is rounded to 100 or 0.
func Percent(share float64) string {
	switch {
	case math.IsNaN(share) || math.IsInf(share, 0):
		return None
	case share < 1 && share > 0.999:
		return "99.9 %"
	case share > 0 && share < 0.001:
		return "below 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// Change writes a change relative to what was before, with its sign.
func Change(relative float64) string {
	if math.IsNaN(relative) || math.IsInf(relative, 0) {
		return None
	}
	return fmt.Sprintf("%+.1f %%", 100*relative)
}

// ChangeWithin writes a relative change with the interval that holds it, all three
// in the same unit.
func ChangeWithin(relative, low, high float64) string {
	return fmt.Sprintf("%s [%+.1f, %+.1f]", Change(relative), 100*low, 100*high)
}

// Number writes a measured value with three digits.
func Number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return None
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Count writes a large number with a thin gap every three digits.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}
