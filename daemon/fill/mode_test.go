package fill

import (
	"slices"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
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
		if got := mode(tt.fields, windows(tt.fields, tt.history, 0, tt.ahead)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Each field of a file has the window that it saw, and no wider one.
func TestWindowsAreThoseOfEachField(t *testing.T) {
	const day = 24 * time.Hour
	at := func(d int) time.Time { return time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, d) }
	fields := func(days ...int) (out []field.Field) {
		for _, d := range days {
			out = append(out, field.Field{Time: at(d)})
		}
		return out
	}
	got := windows(fields(5, 6, 9), fields(1, 3, 12), 3*day, 2*day)
	want := []netcdf.Window{{First: at(3), Last: at(6)}, {First: at(3), Last: at(6)}, {First: at(6), Last: at(9)}}
	if !slices.Equal(got, want) {
		t.Errorf("windows are %v, want %v", got, want)
	}
}

func TestTheStepOfASeriesIsNoHole(t *testing.T) {
	times := func(hours ...int) (out []time.Time) {
		for _, h := range hours {
			out = append(out, time.Date(2024, 4, 1, h, 0, 0, 0, time.UTC))
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		times []time.Time
		want  time.Duration
	}{
		{"one day", times(0), 0},
		{"two days with a hole between", times(0, 96), 0},
		{"days with a hole", times(0, 24, 48, 120), 24 * time.Hour},
		{"days, more of them missing than there", times(0, 24, 96, 168, 240), 24 * time.Hour},
		{"eight days", times(0, 192, 384, 576), 192 * time.Hour},
		{"hours", times(0, 1), time.Hour},
	} {
		if got := seriesStep(tt.times); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAGranuleMayDeclareTheStepOfItsSeries(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"P1D": day, "P8D": 8 * day, "P1M": 30 * day, "PT1H": time.Hour, " PT12H ": 12 * time.Hour, "": 0, "daily": 0, "P": 0, "P1DT": 0, "PT0S": 0,
	} {
		if got := declaredStep([]ingest.Attr{{Name: "title", Value: "P3D"}, {Name: "time_coverage_resolution", Value: text}}); got != want {
			t.Errorf("%q is a step of %v, want %v", text, got, want)
		}
	}
}

func TestProductsAreMadeNowUnlessTheEpochIsGiven(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	if got, err := MadeAt(now, ""); err != nil || !got.Equal(now) {
		t.Errorf("MadeAt() = %v, %v, want now", got, err)
	}
	if got, err := MadeAt(now, "86400"); err != nil || !got.Equal(time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("MadeAt() = %v, %v, want a day after the epoch", got, err)
	}
	for _, bad := range []string{"yesterday", "-1", "1.5"} {
		if _, err := MadeAt(now, bad); err == nil {
			t.Errorf("%q was taken for an epoch", bad)
		}
	}
}
