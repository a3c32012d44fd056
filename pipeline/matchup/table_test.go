package matchup

import (
	"strings"
	"testing"
	"time"
)

func TestTablesOfOthersAreRead(t *testing.T) {
	chl := []string{"CHL", "mass_concentration_of_chlorophyll_a_in_sea_water"}
	want := Observation{Time: time.Date(2024, 5, 1, 6, 30, 0, 0, time.UTC), Lat: 43.5, Lon: -30, Value: 0.25, Platform: "6901"}
	for name, tt := range map[string]struct {
		text, units string
		columns     Columns
	}{
		"commas":            {"platform,time,lat,lon,chl\n6901,2024-05-01T06:30:00Z,43.5,-30,0.25\n", "", Columns{}},
		"semicolons, units": {"# a comment\nStation;Date Time;Latitude [deg];Longitude [deg];Chla [µg/l]\n6901;2024-05-01 06:30;43.5;330;0.25\n", "µg/l", Columns{Time: "Date Time"}},
		"ERDDAP":            {"time,latitude,longitude,platform_code,CPHL\nUTC,degrees_north,degrees_east,,mg m-3\n2024-05-01T06:30:00Z,43.5,-30.0,6901,0.25\n", "mg m-3", Columns{}},
		"own names":         {"t,n,e,v,who\n2024-05-01T08:30:00+02:00,43.5,-30,0.25,6901\n", "", Columns{Time: "t", Lat: "N", Lon: "e", Value: "v", Platform: "who"}},
		"a mark before":     {"\xef\xbb\xbftime\tlat\tlon\tvalue\tid\n2024-05-01 06:30:00\t43.5\t-30\t0.25\t6901\n", "", Columns{}},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := ReadCSV(strings.NewReader(tt.text), chl, tt.columns, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(table.Observations) != 1 || table.Observations[0] != want || table.Units != tt.units {
				t.Errorf("read %+v (%v) in %q, want %+v in %q", table.Observations, table.Passed, table.Units, want, tt.units)
			}
		})
	}
}

func TestRowsThatCannotBeUsedAreCounted(t *testing.T) {
	text := `time,lat,lon,depth,sst
2024-05-01,40,10,1,15
2024-05-01,40,10,50,14
2024-05-01,40,10,-3,15.5
2024-05-01,40,10,,16
yesterday,40,10,1,15
2024-05-01,95,10,1,15
2024-05-01,40,10,1,
2024-05-01,40,10,1,NaN
2024-05-01,40
`
	table, err := ReadCSV(strings.NewReader(text), []string{"analysed_sst"}, Columns{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"too deep": 1, "no time": 1, "no place": 2, "no value": 2}
	if len(table.Observations) != 3 || len(table.Passed) != len(want) {
		t.Errorf("read %+v, passed over %v, want 3 and %v", table.Observations, table.Passed, want)
	}
	for why, n := range want {
		if table.Passed[why] != n {
			t.Errorf("%d rows with %s, want %d", table.Passed[why], why, n)
		}
	}
	if hour := table.Observations[0].Time.Hour(); hour != 12 {
		t.Errorf("a day without an hour is at %d h, want noon", hour)
	}
}

func TestMissingColumnIsNamed(t *testing.T) {
	for _, tt := range []struct{ header, want string }{
		{"time,lat,lon,windspeed", "--value-column"}, {"lat,lon,chl", "--time-column"}, {"time,lon,chl", "--lat-column"}, {"", "header"},
	} {
		if _, err := ReadCSV(strings.NewReader(tt.header), []string{"CHL"}, Columns{}, 10); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ReadCSV(%q) = %v, want a message with %q", tt.header, err, tt.want)
		}
	}
}
