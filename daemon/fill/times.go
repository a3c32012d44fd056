package fill

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"
)

// windows returns the first and the last time that had a part in the analysis of
// each field, be it of a neighbour or of the granule's own file.
func windows(fields, history []field.Field, past, ahead time.Duration) []netcdf.Window {
	out := make([]netcdf.Window, len(fields))
	times := field.Times(slices.Concat(fields, history))
	for i, f := range fields {
		w := netcdf.Window{First: f.Time, Last: f.Time}
		for _, t := range times {
			if t.Before(f.Time.Add(-past)) || t.After(f.Time.Add(ahead)) {
				continue
			}
			if t.Before(w.First) {
				w.First = t
			}
			if t.After(w.Last) {
				w.Last = t
			}
		}
		out[i] = w
	}
	return out
}

// mode returns the mode of a product: delayed where one of its fields saw a
// later one.
func mode(fields []field.Field, seen []netcdf.Window) string {
	for i, f := range fields {
		if seen[i].Last.After(f.Time) {
			return netcdf.Delayed
		}
	}
	return netcdf.NearRealTime
}

// seriesStep returns the step of the series that the times are of, or 0 where
// they are too few to tell a hole from a step: one of more than a day must be
// met three times, and no distance may be shorter.
func seriesStep(times []time.Time) time.Duration {
	const day, least = 24 * time.Hour, 4
	step := field.Step(times)
	if step < day+day/2 {
		return step
	}
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	sorted = slices.CompactFunc(sorted, time.Time.Equal)
	for i := range sorted[1:] {
		if sorted[i+1].Sub(sorted[i]) < step-day/2 {
			return 0
		}
	}
	if len(sorted) < least {
		return 0
	}
	return step
}

// declaredForm is a duration of ISO 8601 as producers write the step of a series:
// P1D, P8D, P1M, PT1H.
var declaredForm = regexp.MustCompile(`^P(?:(\d{1,3})D|(\d{1,2})M|T(\d{1,3})H)$`)

// declaredStep returns the step that a granule itself says its series has, in the
// attribute of ACDD; 0 where it says none.
func declaredStep(attrs []ingest.Attr) time.Duration {
	const day = 24 * time.Hour
	for _, a := range attrs {
		text, ok := a.Value.(string)
		if !ok || a.Name != "time_coverage_resolution" {
			continue
		}
		if m := declaredForm.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
			days, _ := strconv.Atoi(m[1]) // digits by the form, or empty: 0
			months, _ := strconv.Atoi(m[2])
			hours, _ := strconv.Atoi(m[3])
			return time.Duration(days)*day + time.Duration(months)*30*day + time.Duration(hours)*time.Hour
		}
	}
	return 0
}

// MadeAt returns the time of making of a product that is made without a ledger:
// now, unless epoch, the text of the environment variable SOURCE_DATE_EPOCH, is
// a number of seconds since 1970. With it the same input gives the same bytes.
func MadeAt(now time.Time, epoch string) (time.Time, error) {
	if epoch == "" {
		return now.UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, must be a number of seconds since 1970-01-01", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
