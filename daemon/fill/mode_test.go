package fill

import (
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/publish/netcdf"
)

// A file of several days is near-real-time only if no day in it saw the next.
func TestModeSaysWhetherAFieldSawALaterOne(t *testing.T) {
	const day = 24 * time.Hour
	at := func(days ...int) (fields []field.Field) {
		for _, d := range days {
			fields = append(fields, field.Field{Time: time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, d)})
		}
		return fields
	}
	for _, tt := range []struct {
		name            string
		fields, history []field.Field
		ahead           time.Duration
		want            string
	}{
		{"a day and the days before it", at(5), at(3, 4), 5 * day, netcdf.NearRealTime},
		{"a day and the day after it", at(5), at(4, 6), 5 * day, netcdf.Delayed},
		{"a day after it that the window leaves out", at(5), at(4, 9), 3 * day, netcdf.NearRealTime},
		{"days of one file, nothing ahead is looked at", at(5, 6, 7), nil, 0, netcdf.NearRealTime},
		{"days of one file that see one another", at(5, 6, 7), nil, 2 * day, netcdf.Delayed},
		{"days of one file, too far apart", at(5, 9), nil, 2 * day, netcdf.NearRealTime},
	} {
		if got := mode(tt.fields, tt.history, tt.ahead); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
