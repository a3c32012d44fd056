package simulate

import (
	"slices"
	"strings"
	"time"
)

// At returns the granule as one of another time, with its name and its time axis,
// so that the days of a world can stand for the hours or the months of a series
// of another step.
func (g Granule) At(t time.Time) Granule {
	t = t.UTC()
	_, rest, _ := strings.Cut(g.Name, "_")
	g.Name = t.Format("20060102T1504") + "_" + rest
	g.Seen.Time = t
	g.File.Vars = slices.Clone(g.File.Vars)
	for i, v := range g.File.Vars {
		if v.Name == "time" {
			g.File.Vars[i] = newVar(v.Name, v.Dims, []int32{secondsOf(t)}, v.Attrs)
		}
	}
	return g
}

// secondsOf returns a time in the units of the time axis.
func secondsOf(t time.Time) int32 {
	return int32(t.Sub(time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Second)
}
