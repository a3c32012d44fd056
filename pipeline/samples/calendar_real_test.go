package samples_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fhs/go-netcdf/netcdf"

	"lacuna/pipeline/realdata"
	"lacuna/pipeline/samples"
)

// The figures of docs/results.md are of the days that were held out of the three
// recordings of the Pacific. The same days judge.
func TestTheDaysThatJudgeOnThePacificStayTheSame(t *testing.T) {
	var days []samples.Day
	for file, year := range map[string]int{
		"phytofit/pacific_modis_poly4_2021.nc": 2021, "phytofit/pacific_modis_ocx_2020.nc": 2020, "phytofit/pacific_seawifs_gsmgs_2009.nc": 2009,
	} {
		for _, day := range daysOf(t, file) {
			days = append(days, samples.Day{Time: time.Date(year, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, int(day))})
		}
	}
	slices.SortFunc(days, func(a, b samples.Day) int { return a.Time.Compare(b.Time) })
	c := samples.Extend(samples.Calendar{}, days, samples.DefaultSplit())
	for i, held := range formerlyHeldOut(days, 0.25, 12, 2) {
		if role := c.Role(samples.DateOf(days[i].Time)); (role == samples.Judge) != held {
			t.Errorf("%v was held out: %v, and its role is %q", samples.DateOf(days[i].Time), held, role)
		}
	}
	var judge []string
	for _, i := range c.Intervals {
		if i.Role == samples.Judge {
			judge = append(judge, i.From.String()+" "+i.To.String())
		}
	}
	want := []string{
		"2009-04-29 2009-06-06", "2009-10-02 2009-11-09", "2020-03-27 2020-04-24",
		"2020-07-19 2020-08-16", "2021-03-10 2021-04-01", "2021-06-08 2021-06-30",
	}
	if !slices.Equal(judge, want) {
		t.Errorf("the days that judge are %q, want %q", judge, want)
	}
	n := counts(c, days)
	if n[samples.Choose] < 50 || n[samples.Learn] < 350 {
		t.Errorf("roles of %d days: %v", len(days), n)
	}
	checkGaps(t, c)
}

// daysOf returns the time axis of a recording, in days of its year.
func daysOf(t *testing.T, file string) []int32 {
	t.Helper()
	ds, err := netcdf.OpenFile(realdata.Path(t, file), netcdf.NOWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	v, err := ds.Var("time")
	if err != nil {
		t.Fatal(err)
	}
	n, err := v.Len()
	if err != nil {
		t.Fatal(err)
	}
	days := make([]int32, n)
	if err := v.ReadInt32s(days); err != nil {
		t.Fatal(err)
	}
	return days
}
