package matchup

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/pipeline/field"
)

// Observation is one measurement in the sea.
type Observation struct {
	Time     time.Time
	Lat, Lon float64 // degrees; any turn of the globe
	Value    float64
	Platform string // empty: not told
}

// Columns are the names of the columns of a table; empty: found by usual names.
type Columns struct {
	Time, Lat, Lon, Value, Platform, Depth string
}

// Table is a file of measurements.
type Table struct {
	Observations []Observation
	Column       string         // of the values
	Units        string         // as the file writes them; empty: it does not
	Passed       map[string]int // rows that were passed over, by why
}

// usual are the names that columns have in the files of others, in lower case,
// without units.
var usual = map[string][]string{
	"time":     {"time", "datetime", "date_time", "timestamp", "date", "obs_time", "sample_time", "time_utc", "yyyy-mm-ddthh:mm:ss.sss"},
	"lat":      {"lat", "latitude", "y", "decimallatitude", "lat_degn"},
	"lon":      {"lon", "long", "longitude", "x", "decimallongitude", "lon_dege"},
	"platform": {"platform", "platform_code", "platform_id", "platform_number", "station", "station_id", "station_name", "buoy", "buoy_id", "wmo", "wmo_id", "float", "cruise", "id", "trajectory"},
	"depth":    {"depth", "deph", "depth_m", "depth_water", "sample_depth", "pres", "pressure", "z"},
}

// quantities are the names of values, by a part of the names of what they measure.
var quantities = map[string][]string{
	"chl":  {"chl", "chla", "chl_a", "chlor_a", "chlorophyll", "chlorophyll_a", "chlorophyll-a", "chl_hplc", "tchla", "cphl"},
	"temp": {"sst", "temp", "temperature", "sea_surface_temperature", "sea_water_temperature", "water_temperature", "wtmp", "ts"},
	"sst":  {"sst", "temp", "temperature", "sea_surface_temperature", "sea_water_temperature", "water_temperature", "wtmp", "ts"},
	"sal":  {"sss", "sal", "psal", "salinity", "sea_surface_salinity", "sea_water_salinity", "practical_salinity"},
	"sss":  {"sss", "sal", "psal", "salinity", "sea_surface_salinity", "sea_water_salinity", "practical_salinity"},
}

// namesOf returns the names that values of a variable may have.
func namesOf(variables []string) []string {
	var names []string
	for _, v := range variables {
		if v = strings.ToLower(v); v != "" {
			names = append(names, v)
		}
	}
	for _, v := range slices.Clone(names) {
		for part, more := range quantities {
			if strings.Contains(v, part) {
				names = append(names, more...)
			}
		}
	}
	return append(names, "value", "measurement", "observation")
}

// ReadCSV reads a table with a header: commas, semicolons or tabs, lines that
// begin with # left out, units in the header, "chl [mg m-3]", or in a second row
// as ERDDAP writes them. Variables are names of what is measured, for the column of
// values. Rows deeper than maxDepth metres are passed over.
func ReadCSV(r io.Reader, variables []string, columns Columns, maxDepth float64) (Table, error) {
	in := bufio.NewReader(r)
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	rows := csv.NewReader(in)
	rows.Comment, rows.FieldsPerRecord, rows.TrimLeadingSpace, rows.LazyQuotes = '#', -1, true, true
	rows.Comma = delimiter(in)
	header, err := rows.Read()
	if err != nil {
		return Table{}, fmt.Errorf("read its header: %w", err)
	}
	at, units, err := locate(header, variables, columns)
	if err != nil {
		return Table{}, err
	}
	t := Table{Column: bare(header[at["value"]]), Units: units[at["value"]], Passed: map[string]int{}}
	for n := 0; ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return Table{}, fmt.Errorf("read its rows: %w", err)
		}
		if n == 0 && isUnits(row, at) {
			t.Units = strings.TrimSpace(row[at["value"]])
			continue
		}
		o, why := observation(row, at, maxDepth)
		if why != "" {
			t.Passed[why]++
			continue
		}
		t.Observations = append(t.Observations, o)
	}
}

// delimiter is the character of three that the first line has most often.
func delimiter(in *bufio.Reader) rune {
	const most = 4096
	head, _ := in.Peek(most)
	for line := range strings.SplitSeq(string(head), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		best := ','
		for _, c := range []rune{';', '\t'} {
			if strings.Count(line, string(c)) > strings.Count(line, string(best)) {
				best = c
			}
		}
		return best
	}
	return ','
}

// locate finds the columns by their names, and the units in the header.
func locate(header, variables []string, columns Columns) (at map[string]int, units []string, err error) {
	names := make([]string, len(header))
	units = make([]string, len(header))
	for i, text := range header {
		names[i], units[i] = strings.ToLower(bare(text)), unitsIn(text)
	}
	at = map[string]int{}
	named := map[string]string{
		"time": columns.Time, "lat": columns.Lat, "lon": columns.Lon, "value": columns.Value, "platform": columns.Platform, "depth": columns.Depth,
	}
	for role, name := range named {
		candidates := usual[role]
		if role == "value" {
			candidates = namesOf(variables)
		}
		if name != "" {
			candidates = []string{strings.ToLower(name)}
		}
		for _, c := range candidates {
			if i := slices.Index(names, c); i >= 0 {
				at[role] = i
				break
			}
		}
		_, found := at[role]
		if !found && (name != "" || role != "platform" && role != "depth") {
			return nil, nil, fmt.Errorf("it has no column of %s: none of its columns %s is one of %s; name it with --%s-column",
				role, strings.Join(names, ", "), strings.Join(candidates, ", "), role)
		}
	}
	return at, units, nil
}

// bare is the name in a header without its units.
func bare(text string) string {
	if i := strings.IndexAny(text, "[("); i > 0 {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}

// unitsIn are the units in a header such as "chl [mg m-3]"; empty: none.
func unitsIn(text string) string {
	i, j := strings.IndexAny(text, "[("), strings.LastIndexAny(text, "])")
	if i <= 0 || j < i {
		return ""
	}
	return strings.TrimSpace(text[i+1 : j])
}

// isUnits reports whether a row has units in the place of numbers, as the second
// row of ERDDAP's tables.
func isUnits(row []string, at map[string]int) bool {
	if max(at["lat"], at["lon"], at["value"]) >= len(row) {
		return false
	}
	return strings.HasPrefix(strings.ToLower(row[at["lat"]]), "degree") && strings.HasPrefix(strings.ToLower(row[at["lon"]]), "degree")
}

// observation reads a row, or says why it is passed over.
func observation(row []string, at map[string]int, maxDepth float64) (o Observation, why string) {
	cell := func(role string) string {
		i, ok := at[role]
		if !ok || i >= len(row) {
			return ""
		}
		return strings.TrimSpace(row[i])
	}
	number := func(role string) float64 {
		x, err := strconv.ParseFloat(cell(role), 64)
		if err != nil {
			return math.NaN()
		}
		return x
	}
	var ok bool
	o.Lat, o.Lon, o.Value, o.Platform = number("lat"), number("lon"), number("value"), cell("platform")
	if o.Time, ok = parseTime(cell("time")); !ok {
		return o, "no time"
	}
	depth := number("depth")
	switch {
	case !(math.Abs(o.Lat) <= 90) || !(math.Abs(o.Lon) <= 540):
		return o, "no place"
	case math.IsNaN(o.Value) || math.IsInf(o.Value, 0):
		return o, "no value"
	case math.Abs(depth) > maxDepth: // NaN: the surface
		return o, "too deep"
	}
	o.Lon = field.Wrap(o.Lon)
	return o, ""
}

// parseTime reads the times of tables. Without a zone they are UTC; a day without
// an hour is its noon, the nearest to any hour of it.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04Z", "2006-01-02 15:04:05Z07:00",
		"20060102T150405Z", "2006/01/02 15:04:05", "2006/01/02 15:04",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	for _, layout := range []string{time.DateOnly, "20060102", "2006/01/02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Add(12 * time.Hour), true
		}
	}
	return time.Time{}, false
}
