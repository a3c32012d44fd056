package netcdf

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestBoundsAreTheStepThatAFieldLiesIn(t *testing.T) {
	at := func(text string) time.Time {
		t.Helper()
		moment, err := time.Parse("2006-01-02T15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, tt := range []struct {
		name             string
		time, begin, end string
		step             time.Duration
	}{
		{"a day by its midnight", "2024-03-25T00:00", "2024-03-25T00:00", "2024-03-26T00:00", dayLength},
		{"a day by its noon", "2024-03-25T12:00", "2024-03-25T00:00", "2024-03-26T00:00", dayLength},
		{"a pass before midnight", "2024-03-25T23:59", "2024-03-25T00:00", "2024-03-26T00:00", dayLength},
		{"an hour by its middle", "2024-03-25T05:30", "2024-03-25T05:00", "2024-03-25T06:00", time.Hour},
		{"an hour by its begin", "2024-03-25T05:00", "2024-03-25T05:00", "2024-03-25T06:00", time.Hour},
		{"half a day", "2024-03-25T18:00", "2024-03-25T12:00", "2024-03-26T00:00", 12 * time.Hour},
		{"eight days", "2024-03-25T00:00", "2024-03-25T00:00", "2024-04-02T00:00", 8 * dayLength},
		{"a month by its first", "2024-02-01T00:00", "2024-02-01T00:00", "2024-03-01T00:00", 31 * dayLength},
		{"a month by its middle", "2024-02-15T00:00", "2024-02-01T00:00", "2024-03-01T00:00", 30 * dayLength},
	} {
		if got, want := period(at(tt.time), tt.step), [2]time.Time{at(tt.begin), at(tt.end)}; got != want {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
}

func TestTheStepIsTheUsualOneOfTheTimes(t *testing.T) {
	times := func(hours ...float64) (out []time.Time) {
		for _, h := range hours {
			out = append(out, day(2024, 3, 1).Add(time.Duration(h*float64(time.Hour))))
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		times []time.Time
		want  time.Duration
	}{
		{"one field", times(0), dayLength},
		{"days, one of them missing", times(0, 24, 72, 96), dayLength},
		{"passes that come earlier each day", times(12, 35.9, 59.8), dayLength},
		{"hours, in no order", times(3, 1, 2, 0), time.Hour},
		{"half days", times(6, 18, 30), 12 * time.Hour},
		{"eight days", times(0, 192, 384), 8 * dayLength},
	} {
		p := Product{Times: tt.times}
		if got := p.step(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The bounds are in the units of time, whatever these count.
func TestTimeCoverageAndBoundsAgree(t *testing.T) {
	tests := []struct {
		name       string
		product    func() Product
		bounds     string // name of their variable
		want       []float64
		start, end string
		duration   string
	}{
		{"days since", gulfOfMaine, "time_bnds", []float64{0, 1, 1, 2}, "2018-08-01T00:00:00Z", "2018-08-03T00:00:00Z", "P2D"},
		{"seconds since, as integers", blackSea, "time_bnds", []float64{1364169600, 1364256000}, "2024-03-25T00:00:00Z", "2024-03-26T00:00:00Z", "P1D"},
		{"noon", smos, "time_bnds", []float64{17999.5, 18000.5, 18000.5, 18001.5}, "2019-04-14T00:00:00Z", "2019-04-16T00:00:00Z", "P2D"},
		{"months", gulfOfMaineMonthly, "time_bnds", []float64{0, 1, 1, 2}, "2018-01-01T00:00:00Z", "2018-03-01T00:00:00Z", "P59D"},
		{"given by the input", scalarTime, "time_bounds", []float64{0, 8}, "2021-01-01T00:00:00Z", "2021-01-09T00:00:00Z", "P8D"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := mustFile(t, tt.product())
			axis, _ := f.variable("time")
			b, ok := f.variable(tt.bounds)
			if text(axis.Attrs, "bounds") != tt.bounds || !ok || len(b.Dims) != 2 || b.Dims[0] != axis.Dims[0] {
				t.Fatalf("time:bounds = %q, which runs along %v", text(axis.Attrs, "bounds"), b.Dims)
			}
			for i, got := range unpacked(b) {
				if len(tt.want) != len(b.Raw)/8 || math.Abs(got-tt.want[i]) > 1e-9 {
					t.Errorf("bounds are %v, want %v", unpacked(b), tt.want)
					break
				}
			}
			for name, want := range map[string]string{"time_coverage_start": tt.start, "time_coverage_end": tt.end, "time_coverage_duration": tt.duration} {
				if got := text(f.Attrs, name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
		})
	}
}

// A map without a time dimension gets one, and so do its companions and the maps
// that it brings along: they could not be joined along time otherwise.
func TestEveryMapRunsAlongTime(t *testing.T) {
	quality := Var{Name: "quality", Type: "byte", Dims: []string{"lat", "lon"}, Raw: make([]byte, rows*cols)}
	for name, make := range map[string]func() Product{"no time": smap, "scalar time": scalarTime} {
		p := make()
		p.Source.Vars = append(p.Source.Vars, quality)
		f := mustFile(t, p)
		for _, v := range f.Vars {
			if slices.Contains(v.Dims, "lat") && slices.Contains(v.Dims, "lon") && !slices.Equal(v.Dims, []string{"time", "lat", "lon"}) {
				t.Errorf("%s: %s runs along %v", name, v.Name, v.Dims)
			}
		}
		if len(p.Source.Dims) > 0 && p.Source.Dims[0].Name != "lat" || len(p.Source.Vars[len(p.Source.Vars)-2].Dims) != 2 {
			t.Errorf("%s: the source was changed", name)
		}
	}
}

func TestFactsOfEveryFieldAreVariablesAlongTime(t *testing.T) {
	p := gulfOfMaine()
	p.Revision = 3
	for i := range rows * cols { // the first day saw nothing
		if p.Flags[i]&Land == 0 {
			p.Flags[i] = Interpolated
		}
	}
	path := filepath.Join(t.TempDir(), "p.nc")
	if err := WriteProduct(path, p); err != nil {
		t.Fatal(err)
	}
	got := readBack(t, path)
	if modes := got["mode"]; !slices.Equal(modes, []byte{1, 0}) {
		t.Errorf("modes are %v: the first day saw the second, and that one nothing later", modes)
	}
	if model := strings.TrimRight(string(got["model"][:modelBytes]), "\x00"); len(got["model"]) != 2*modelBytes || model != "oi" {
		t.Errorf("model is %q in %d bytes", model, len(got["model"]))
	}
	if r := got["revision"]; number(r, "int") != 3 || number(r[4:], "int") != 3 {
		t.Errorf("revisions are %x", r)
	}
	sea, seen := 0, 0
	for _, flags := range p.Flags[rows*cols:] {
		if flags&Land == 0 {
			sea++
		}
		if flags == 0 {
			seen++
		}
	}
	if o := got["observed_fraction"]; float32At(o, 0) != 0 || float32At(o, 1) != float32(seen)/float32(sea) {
		t.Errorf("observed fractions are %v and %v, want 0 and %d of %d", float32At(o, 0), float32At(o, 1), seen, sea)
	}
	for name, want := range map[string]time.Time{"window_start": day(2018, 7, 26), "window_end": day(2018, 8, 2)} {
		if x := number(got[name][8:], "double"); x != float64(want.Unix()) {
			t.Errorf("%s of the second day is %v, want that of %v", name, x, want)
		}
	}
	if comment := text(mustFile(t, p).Attrs, "comment"); !strings.Contains(comment, "1 of its 2 fields") {
		t.Errorf("comment = %q, want it to say that one of two fields is delayed", comment)
	}
}
