package ingest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"lacuna/internal/cftime"
)

// timesOf converts the numbers of a time variable. The notes state the
// assumptions.
func timesOf(v *headerVar, values []float64) (times []time.Time, notes []string, err error) {
	calendar := strings.ToLower(v.Text("calendar"))
	clock, notes, err := cftime.New(v.Text("units"), calendar)
	switch {
	case errors.Is(err, cftime.ErrUnits):
		return nil, nil, bad(fmt.Sprintf("its time variable %s has the units %q", v.Name, v.Text("units")),
			`they must read like "days since 1970-01-01"`)
	case err != nil:
		return nil, nil, bad(fmt.Sprintf("its times follow the calendar %q, in which real days do not exist or repeat", calendar),
			"convert it to the standard calendar first, for example with cdo setcalendar,standard")
	}
	times = make([]time.Time, len(values))
	for i, x := range values {
		t, ok := clock.At(x)
		if !ok {
			return nil, nil, bad(fmt.Sprintf("its time number %d is %g %s, which is no date", i+1, x, v.Text("units")),
				"the file is damaged or was written wrongly: "+again)
		}
		times[i] = t
	}
	return times, notes, nil
}
