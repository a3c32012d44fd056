// Package erddaptest is a server that speaks as much of ERDDAP's griddap as
// clients use, with its faults, for tests. netCDF-C reads from it too.
package erddaptest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server has the dataset "sea" with the variables chlorophyll, whose map of a
// time has one value plus, at row y and column x, y + x/100, and quality, which
// is 10y + x.
type Server struct {
	*httptest.Server
	Lat, Lon []float64
	Clouds   bool // a fifth of the cells of every map is missing

	mu    sync.Mutex        // guards what follows
	Maps  map[int64]float32 // values by their times, in seconds since 1970
	Twice bool              // the first time stands twice in the axis
	Down  bool
	Asked []string                                          // requests: document and constraint
	Agent string                                            // of the last request
	Fault func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

// New starts a server with a grid and no maps, which ends with the test.
func New(t testing.TB, lat, lon []float64) *Server {
	t.Helper()
	s := &Server{Lat: lat, Lon: lon, Maps: map[int64]float32{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Axis returns n numbers.
func Axis(first, step float64, n int) (out []float64) {
	for i := range n {
		out = append(out, first+step*float64(i))
	}
	return out
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query, err := url.QueryUnescape(r.URL.RawQuery)
	if err != nil || strings.ContainsAny(r.URL.RawQuery, "[]") {
		http.Error(w, "Invalid character found in the request target", http.StatusBadRequest) // as Tomcat
		return
	}
	s.Asked, s.Agent = append(s.Asked, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]+"?"+query), r.UserAgent()
	switch {
	case s.Fault != nil && s.Fault(w, r):
	case s.Down:
		http.NotFound(w, r)
	case r.URL.Path == "/erddap/griddap/sea.das":
		s.das(w)
	case r.URL.Path == "/erddap/griddap/sea.dds":
		fmt.Fprint(w, s.dds(query))
	case r.URL.Path == "/erddap/griddap/sea.dods":
		s.dods(w, query)
	default:
		Refuse(w, http.StatusNotFound, "Not Found: Currently unknown datasetID=other")
	}
}

// Refuse answers as OPeNDAP does.
func Refuse(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, "Error {\n    code=%d;\n    message=\"%s\";\n}\n", code, message)
}

func (s *Server) times() (out []float64) {
	for _, at := range slices.Sorted(maps.Keys(s.Maps)) {
		out = append(out, float64(at))
	}
	if s.Twice && len(out) > 0 {
		out = append(out[:1:1], out...)
	}
	return out
}

func (s *Server) das(w http.ResponseWriter) {
	t := s.times()
	extent := ""
	if len(t) > 0 {
		extent = fmt.Sprintf("    Float64 actual_range %g, %g;\n", t[0], t[len(t)-1])
	}
	fmt.Fprintf(w, `Attributes {
  time {
    String _CoordinateAxisType "Time";
%s    String units "seconds since 1970-01-01T00:00:00Z";
    String standard_name "time";
  }
  latitude {
    Float64 actual_range %g, %g;
    String units "degrees_north";
    String standard_name "latitude";
  }
  longitude {
    String units "degrees_east";
    String standard_name "longitude";
  }
  altitude {
    String units "m";
  }
  chlorophyll {
    Float32 _FillValue -999.0;
    String long_name "Chlorophyll \"a\", daily";
    String standard_name "mass_concentration_of_chlorophyll_in_sea_water";
    String units "mg m^-3";
  }
  quality {
    String _Unsigned "false";
    Byte flag_values 0, 1;
  }
 NC_GLOBAL {
    String title "A sea; with {braces}";
    String history "made
%s GET of this page";
    String time_coverage_end "%g";
  }
}
`, extent, s.Lat[0], s.Lat[len(s.Lat)-1], time.Now().Format(time.RFC3339Nano), t)
}

// request is one array of a constraint, with an inclusive range for each axis.
type request struct {
	name   string
	ranges [][2]int
}

var bracket = regexp.MustCompile(`\[([^\]]*)\]`)

func (s *Server) axes() map[string][]float64 {
	return map[string][]float64{"time": s.times(), "altitude": {0}, "latitude": s.Lat, "longitude": s.Lon}
}

func order(name string) []string {
	if name == "chlorophyll" || name == "quality" {
		return []string{"time", "altitude", "latitude", "longitude"}
	}
	return []string{name}
}

// parse reads a constraint; an empty one asks for everything.
func (s *Server) parse(query string) ([]request, error) {
	if query == "" {
		query = "time,altitude,latitude,longitude,chlorophyll,quality"
	}
	axes := s.axes()
	var out []request
	for word := range strings.SplitSeq(query, ",") {
		name, _, _ := strings.Cut(word, "[")
		name, _, _ = strings.Cut(name, ".") // chlorophyll.chlorophyll of netCDF-C
		if !slices.Contains([]string{"time", "altitude", "latitude", "longitude", "chlorophyll", "quality"}, name) {
			return nil, fmt.Errorf("unrecognized variable %s", name)
		}
		r := request{name: name}
		given := bracket.FindAllStringSubmatch(word, -1)
		for i, dim := range order(name) {
			whole := [2]int{0, len(axes[dim]) - 1}
			if len(given) > 0 {
				parts := strings.Split(given[i][1], ":")
				var err error
				if whole[0], err = place(axes[dim], parts[0]); err == nil {
					whole[1], err = place(axes[dim], parts[len(parts)-1])
				}
				if err != nil {
					return nil, err
				}
			}
			r.ranges = append(r.ranges, whole)
		}
		out = append(out, r)
	}
	return out, nil
}

// place returns the index of 3, (3.5) or (last): values find the nearest.
func place(values []float64, text string) (int, error) {
	if text == "(last)" || text == "last" {
		return len(values) - 1, nil
	}
	if !strings.HasPrefix(text, "(") {
		return strconv.Atoi(text)
	}
	want, err := strconv.ParseFloat(strings.Trim(text, "()"), 64)
	if err != nil {
		return 0, err
	}
	if len(values) == 0 || want < values[0] || want > values[len(values)-1] {
		return 0, fmt.Errorf("your query produced no matching results. (%v is outside of the axis)", want)
	}
	best := 0
	for i, v := range values {
		if math.Abs(v-want) < math.Abs(values[best]-want) {
			best = i
		}
	}
	return best, nil
}

func kind(name string) string {
	return map[string]string{"chlorophyll": "Float32", "quality": "Byte"}[name]
}

func (r request) declare(dim int) string {
	return fmt.Sprintf("[%s = %d]", order(r.name)[dim], r.ranges[dim][1]-r.ranges[dim][0]+1)
}

func (s *Server) dds(query string) string {
	requests, err := s.parse(query)
	if err != nil {
		return err.Error()
	}
	text := "Dataset {\n"
	for _, r := range requests {
		if kind(r.name) == "" {
			text += fmt.Sprintf("  Float64 %s%s;\n", r.name, r.declare(0))
			continue
		}
		text += "  GRID {\n    ARRAY:\n      " + kind(r.name) + " " + r.name
		for i := range r.ranges {
			text += r.declare(i)
		}
		text += ";\n    MAPS:\n"
		for i, dim := range order(r.name) {
			text += fmt.Sprintf("      Float64 %s%s;\n", dim, r.declare(i))
		}
		text += "  } " + r.name + ";\n"
	}
	return text + "} sea;\n"
}

func (s *Server) dods(w http.ResponseWriter, query string) {
	requests, err := s.parse(query)
	if err != nil {
		Refuse(w, http.StatusNotFound, "Not Found: "+err.Error())
		return
	}
	out := []byte(s.dds(query) + "Data:\n")
	length := func(n int) {
		out = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(out, uint32(n)), uint32(n))
	}
	coordinates := func(values []float64) {
		length(len(values))
		for _, v := range values {
			out = binary.BigEndian.AppendUint64(out, math.Float64bits(v))
		}
	}
	axes := s.axes()
	for _, r := range requests {
		if kind(r.name) == "" {
			coordinates(axes[r.name][r.ranges[0][0] : r.ranges[0][1]+1])
			continue
		}
		t, y, x := r.ranges[0], r.ranges[2], r.ranges[3]
		length((t[1] - t[0] + 1) * (y[1] - y[0] + 1) * (x[1] - x[0] + 1))
		for i := t[0]; i <= t[1]; i++ {
			value := s.Maps[int64(axes["time"][i])]
			for row := y[0]; row <= y[1]; row++ {
				for column := x[0]; column <= x[1]; column++ {
					if r.name == "quality" {
						out = append(out, byte(row*10+column))
						continue
					}
					v := value + float32(row) + float32(column)/100
					if s.Clouds && (row*7+column*3+int(axes["time"][i])/86400)%5 == 0 {
						v = -999
					}
					out = binary.BigEndian.AppendUint32(out, math.Float32bits(v))
				}
			}
		}
		if n := (t[1] - t[0] + 1) * (y[1] - y[0] + 1) * (x[1] - x[0] + 1); r.name == "quality" {
			out = append(out, make([]byte, (4-n%4)%4)...)
		}
		for i, dim := range order(r.name) {
			coordinates(axes[dim][r.ranges[i][0] : r.ranges[i][1]+1])
		}
	}
	_, _ = w.Write(out)
}

// Put makes or replaces the map of a time.
func (s *Server) Put(at time.Time, value float32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Maps[at.Unix()] = value
}

// Set changes the server between two requests.
func (s *Server) Set(change func(*Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}
