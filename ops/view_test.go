package ops

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hostile is a file name that an archive may show.
const hostile = `2024/<script>alert("x")</script>&'"/..\x.nc`

// fakeSources is a small set of sources for the pages.
type fakeSources struct{ reads atomic.Int32 }

func may(d int) time.Time { return time.Date(2024, 5, d, 0, 0, 0, 0, time.UTC) }

func (f *fakeSources) Span(_ context.Context, dataset string) (first, last time.Time, err error) {
	switch dataset {
	case "blk-chl":
		return time.Date(2019, 3, 2, 0, 0, 0, 0, time.UTC), may(20), nil
	case "med-sst":
		return first, last, nil
	}
	return first, last, ErrNotFound
}

func (f *fakeSources) Days(context.Context, string, time.Time, time.Time) ([]Day, error) {
	return []Day{{may(16), DayDelayed}, {may(17), DayNearRealTime}, {may(18), DayQuarantined}, {may(20), DayWaiting}}, nil
}

func (f *fakeSources) OfDay(_ context.Context, dataset string, day time.Time) ([]GranuleLine, error) {
	if dataset != "blk-chl" {
		return nil, ErrNotFound
	}
	one := GranuleLine{ID: GranuleID{Dataset: dataset, Name: hostile}, State: "stored", Time: day}
	switch day.Day() {
	case 17:
		return []GranuleLine{one}, nil
	case 18:
		return []GranuleLine{one, {ID: GranuleID{Dataset: dataset, Name: "second.nc"}, State: "quarantined"}}, nil
	}
	return nil, nil
}

func (f *fakeSources) Granule(_ context.Context, id GranuleID) (Granule, error) {
	if id.Name != hostile || id.Revision > 2 {
		return Granule{}, ErrNotFound
	}
	if id.Revision == 0 {
		id.Revision = 2
	}
	return Granule{
		ID: id, State: "stored", First: may(17), Last: may(17), Fields: 1,
		Input:      File{Name: hostile, Bytes: 1234, SHA256: "aa"},
		Product:    &Made{File: File{Name: hostile, SHA256: "bb", URL: ProductURL("blk/<b>.nc")}, Members: &File{Name: hostile, SHA256: "cc", URL: ProductURL("blk/<b>_members.nc")}, Mode: "delayed", Model: `<i>m`, Units: "mg"},
		Revisions:  []Revision{{Number: 2, Stored: may(18), Note: "delayed"}, {Number: 1, Stored: may(17)}},
		History:    []Event{{At: may(17), Text: "seen as " + hostile}},
		Deliveries: []Delivery{{Sink: "kafka:lacuna", Kind: "publish", State: "delivered", Message: "key blk-chl/" + hostile}},
	}, nil
}

func (f *fakeSources) Map(_ context.Context, _ GranuleID, _ int) (Map, error) {
	f.reads.Add(1)
	nan := float32(math.NaN())
	return Map{ // from south to north, as many files have it
		Variable: "chlorophyll", Units: "mg m-3", Log: true, Lat: []float64{40, 41}, Lon: []float64{30, 31, 32},
		Value: []float32{0.1, 0.2, nan, 1.5, 2.5, 3.5}, Sigma: []float32{0.01, 0.02, nan, 0.03, 0.04, 0.05}, Flags: []byte{0, 2, 1, 0, 2, 10},
	}, nil
}

func (f *fakeSources) Models(context.Context) (ModelBook, error) {
	return ModelBook{
		Versions: []Version{{
			ID: "v2", Dataset: "blk-chl", Kind: "fine-tuned", Parent: "v1", States: []string{"champion"}, Created: may(3), Parameters: 2_100_000,
			Scores: []Score{{Name: "mse", Champion: 0.31, Challenger: 0.25}, {Name: "cbgd", Champion: math.NaN(), Challenger: 1.01}},
		}},
		Promotions: []Promotion{{At: may(3), Action: "promote", Dataset: "blk-chl", Version: "v2", Previous: "v1", By: "gate", Why: []string{"error lower by 19 %"}}},
	}, nil
}

func (f *fakeSources) Skill(context.Context, string, int) ([]Skill, error) {
	return []Skill{
		{Day: may(1), Kind: "overlay", Method: hostile, MSE: 0.2, Within90: 0.9, Pixels: 100},
		{Day: may(2), Kind: "overlay", MSE: math.NaN()},
		{Day: may(9), Kind: "revealed", MSE: 0.4, Within90: 0.8, Pixels: 20},
	}, nil
}

func (f *fakeSources) Picture(_ context.Context, version string) ([]byte, error) {
	if version != "blk-1" {
		return nil, ErrNotFound
	}
	return []byte("\x89PNG"), nil
}

func TestThePictureOfAVersionIsServed(t *testing.T) {
	h, _ := fullHandler(t, "")
	answer := get(t, h, "/models/blk-1.png")
	if answer.Code != http.StatusOK || answer.Body.String() != "\x89PNG" || answer.Header().Get("Content-Type") != "image/png" {
		t.Errorf("the picture: %d %q %v", answer.Code, answer.Body, answer.Header())
	}
	for _, path := range []string{"/models/blk-2.png", "/models/blk-1", "/models/..%2Fblk-1.png"} {
		if code := get(t, h, path).Code; code != http.StatusNotFound {
			t.Errorf("%s: %d, want not found", path, code)
		}
	}
}

func (f *fakeSources) Retry(_ context.Context, _, granule string) error {
	switch granule {
	case "x.nc":
		return nil
	case "other.nc":
		return errors.New("it is not set aside")
	}
	return ErrNotFound
}

func (f *fakeSources) Steer(_ context.Context, dataset, order string) (string, error) {
	if order != "pause" {
		return "", errors.New("no training is under way")
	}
	return "the training of " + dataset + " is paused", nil
}

func (f *fakeSources) RedoDay(context.Context, string, time.Time, string) error { return nil }

func fullHandler(t *testing.T, tokenFile string) (http.Handler, *fakeSources) {
	t.Helper()
	f := &fakeSources{}
	src := Sources{Status: exampleStatus, Products: t.TempDir(), Days: f, Granules: f, Models: f, Actions: f}
	return newHandler(src, tokenFile, slog.New(slog.DiscardHandler)).routes(), f
}

func hostilePath(revision int) string { return granulePath("blk-chl", hostile, revision) }

func TestTheGranulePageLeadsToTheMembers(t *testing.T) {
	h, _ := fullHandler(t, "")
	body := get(t, h, hostilePath(2)).Body.String()
	if !strings.Contains(body, `href="`+ProductURL("blk/<b>_members.nc")+`" download`) || !strings.Contains(body, "<code>cc</code>") {
		t.Errorf("the page does not link the members:\n%s", body)
	}
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	h, _ := fullHandler(t, "")
	paths := []string{
		"/", "/datasets/blk-chl", "/datasets/blk-chl/2024-05-17", "/datasets/none", "/models", hostilePath(1), "/map", "/status.json", "/healthz",
		"/readyz", "/products/x.nc", "/nothing", "/actions/retry",
	}
	for name := range assets() {
		paths = append(paths, "/"+name)
	}
	for _, path := range paths {
		header := get(t, h, path).Header()
		csp := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may be read by pages from elsewhere", path)
		}
	}
}

func TestHostileNamesStayText(t *testing.T) {
	h, _ := fullHandler(t, "")
	for _, path := range []string{"/", "/datasets/blk-chl", "/datasets/blk-chl/2024-05-18", hostilePath(0), "/models"} {
		r := get(t, h, path)
		if r.Code != http.StatusOK {
			t.Errorf("GET %s = %d", path, r.Code)
		}
		for _, bad := range []string{"<script>", "<i>m", "<b>", `style="`, "javascript:", "onload=", "onclick="} {
			if strings.Contains(r.Body.String(), bad) {
				t.Errorf("%s has %q in it", path, bad)
			}
		}
	}
}

func TestNothingComesFromElsewhere(t *testing.T) {
	files, err := web.ReadDir("web")
	must(t, err)
	for _, file := range files {
		text, err := web.ReadFile("web/" + file.Name())
		must(t, err)
		for _, bad := range []string{"https://", "//cdn", "@import", "eval(", "innerHTML", "document.write"} {
			if bytes.Contains(text, []byte(bad)) {
				t.Errorf("%s has %q in it", file.Name(), bad)
			}
		}
		if clean := bytes.ReplaceAll(text, []byte("http://www.w3.org/2000/svg"), nil); bytes.Contains(clean, []byte("http://")) {
			t.Errorf("%s refers to another server", file.Name())
		}
	}
}

func TestOnlyReadingIsAllowed(t *testing.T) {
	h, _ := fullHandler(t, "")
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
		for _, path := range []string{"/", "/status.json", "/products/a.nc", "/datasets/blk-chl", hostilePath(1), "/models", "/events", "/map"} {
			r := httptest.NewRecorder()
			h.ServeHTTP(r, httptest.NewRequest(method, path, nil))
			if r.Code != http.StatusMethodNotAllowed || r.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s = %d, want 405", method, path, r.Code)
			}
		}
	}
}

func TestUnknownPagesAreNotFound(t *testing.T) {
	h, _ := fullHandler(t, "")
	for _, path := range []string{
		"/datasets/none", "/datasets/none/2024-05-17", "/datasets/blk-chl/2024-13-01", "/datasets/blk-chl/../../status.json",
		"/datasets/..%2f..%2fetc", "/datasets/blk-chl?until=1900", "/datasets/blk-chl?until=x", "/granule", "/granule?dataset=blk-chl",
		"/granule?dataset=blk-chl&name=none", hostilePath(3), hostilePath(1) + "&field=0", "/map", "/map?dataset=blk-chl&name=none",
		mapPath(GranuleID{"blk-chl", hostile, 1}) + "&field=2", "/web/base.html", "/base.html", "/style.css/x",
	} {
		r := get(t, h, path)
		if r.Code != http.StatusNotFound && r.Code != http.StatusMovedPermanently && r.Code != http.StatusTemporaryRedirect {
			t.Errorf("GET %s = %d, want 404", path, r.Code)
		}
	}
	for _, path := range []string{"/datasets/x", "/granule?dataset=x&name=y", "/models", "/map?dataset=x&name=y"} {
		if r := get(t, handlerOf(t, ""), path); r.Code != http.StatusNotFound {
			t.Errorf("GET %s of a server without such pages = %d, want 404", path, r.Code)
		}
	}
}

func TestCalendarNamesTheStateOfEveryDay(t *testing.T) {
	h, _ := fullHandler(t, "")
	body := get(t, h, "/datasets/blk-chl").Body.String()
	for _, want := range []string{
		`aria-label="16 May 2024: filled, delayed mode"`, `aria-label="17 May 2024: filled, near-real-time"`,
		`aria-label="18 May 2024: set aside, needs a look"`, `aria-label="19 May 2024: missing, nothing was delivered"`,
		`aria-label="20 May 2024: delivered, waiting to be filled"`, `href="/datasets/blk-chl/2024-05-16"`, "older years", "until=2020",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the calendar lacks %s", want)
		}
	}
	if strings.Contains(body, "21 May 2024") || strings.Contains(body, "newer years") {
		t.Error("the calendar goes on after its last day")
	}
	older := get(t, h, "/datasets/blk-chl?until=2020").Body.String()
	if !strings.Contains(older, "2 March 2019: missing") || strings.Contains(older, `"1 March 2019`) || !strings.Contains(older, "newer years") {
		t.Error("the older years do not begin with the first day, or lead nowhere")
	}
	if body := get(t, h, "/datasets/med-sst").Body.String(); !strings.Contains(body, "No day yet") {
		t.Error("a dataset without a day has no page that says so")
	}
}

func TestMonthsBeginOnTheirWeekday(t *testing.T) {
	c := newCalendar("x", may(1), may(31), nil)
	m := c.Years[0].Months[time.May-1]
	if m.Lead != 2 || len(m.Days) != 31 { // 1 May 2024 was a Wednesday
		t.Errorf("May 2024 begins after %d days of the week and has %d", m.Lead, len(m.Days))
	}
	if c.KnownDays != 31 || c.CompletedDays != 0 || len(c.Counts) != 1 || c.Counts[0] != (stateDays{DayMissing, 31}) {
		t.Errorf("of 31 missing days %d are known, %d filled, %v", c.KnownDays, c.CompletedDays, c.Counts)
	}
}

func TestDayOfOneGranuleIsThatGranule(t *testing.T) {
	h, _ := fullHandler(t, "")
	r := get(t, h, "/datasets/blk-chl/2024-05-17")
	if r.Code != http.StatusSeeOther || r.Header().Get("Location") != hostilePath(0) {
		t.Errorf("GET = %d, %s, want the way to the granule", r.Code, r.Header().Get("Location"))
	}
	if r := get(t, h, r.Header().Get("Location")); r.Code != http.StatusOK || !strings.Contains(r.Body.String(), "17 blk-chl") {
		t.Errorf("the way leads to %d", r.Code)
	}
	if r := get(t, h, "/datasets/blk-chl/2024-05-19"); !strings.Contains(r.Body.String(), "Nothing was delivered") {
		t.Errorf("an empty day = %d", r.Code)
	}
}

func TestHealthIsAWordAndTheWorstOne(t *testing.T) {
	newest := may(19)
	alarm := func(name string) []Alarm {
		return []Alarm{{Name: name, Subject: "sea"}, {Name: "archive", Subject: "other"}}
	}
	for _, tt := range []struct {
		name   string
		set    Dataset
		alarms []Alarm
		want   string
	}{
		{"nothing yet", Dataset{}, nil, "no granule yet"},
		{"all done", Dataset{NewestField: newest}, nil, "up to date"},
		{"work to do", Dataset{NewestField: newest, Queue: 3}, nil, "catching up"},
		{"late", Dataset{NewestField: newest, Queue: 3}, alarm("lag"), "needs a look"},
		{"archive away", Dataset{NewestField: newest}, alarm("archive"), "in trouble"},
		{"another's alarm", Dataset{NewestField: newest}, alarm("archive")[1:], "up to date"},
		{"disk full", Dataset{DiskFull: true}, nil, "in trouble"},
	} {
		tt.set.Name = "sea"
		if got := healthOf(tt.set, tt.alarms).Word; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMapTravelsBitByBitWithNorthUp(t *testing.T) {
	h, f := fullHandler(t, "")
	path := mapPath(GranuleID{"blk-chl", hostile, 1})
	r := get(t, h, path)
	if r.Code != http.StatusOK || r.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("GET %s = %d, %v", path, r.Code, r.Header())
	}
	unpacked, err := gzip.NewReader(r.Body)
	must(t, err)
	body, err := io.ReadAll(unpacked)
	must(t, err)
	length := binary.LittleEndian.Uint32(body)
	var head mapHeader
	must(t, json.Unmarshal(body[4:4+length], &head))
	if head.Rows != 2 || head.Cols != 3 || head.Every != 1 || !slices.Equal(head.Lat, []float64{41, 40}) || !head.Log {
		t.Errorf("header %+v", head)
	}
	const n = 6
	planes := body[4+length:]
	var values []float32
	for i := range n {
		bits := uint32(planes[i]) | uint32(planes[n+i])<<8 | uint32(planes[2*n+i])<<16 | uint32(planes[3*n+i])<<24
		values = append(values, math.Float32frombits(bits))
	}
	if want := []float32{1.5, 2.5, 3.5, 0.1, 0.2}; !slices.Equal(values[:5], want) || values[5] == values[5] {
		t.Errorf("values %v, want %v and NaN", values, want)
	}
	if flags := planes[8*n:]; !bytes.Equal(flags, []byte{0, 2, 10, 0, 2, 1}) {
		t.Errorf("flags %v", flags)
	}

	get(t, h, path)
	if got := f.reads.Load(); got != 1 {
		t.Errorf("the product was read %d times for two visitors", got)
	}
	again := httptest.NewRequest(http.MethodGet, path, nil)
	again.Header.Set("If-None-Match", r.Header().Get("ETag"))
	second := httptest.NewRecorder()
	h.ServeHTTP(second, again)
	if second.Code != http.StatusNotModified {
		t.Errorf("a map that the browser has = %d, want 304", second.Code)
	}
}

// A cell of a bent grid is told its own place, in the order of the picture.
func TestMapsOfBentGridsHaveThePlacesOfTheirCells(t *testing.T) {
	m := Map{
		Lat: []float64{-1, 1}, Lon: []float64{-1, 0, 1}, // rows run up
		Value: make([]float32, 6), Sigma: make([]float32, 6), Flags: make([]byte, 6),
		Places: [2][]float32{{80, 81, 82, 83, 84, 85}, {-170, -175, 180, 175, 170, 165}},
	}
	packed, err := encodeMap(m)
	must(t, err)
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	body, err := io.ReadAll(unpacked)
	must(t, err)
	places := body[len(body)-2*4*6:]
	at := func(k, cell int) float32 {
		var bits uint32
		for b := range 4 {
			bits |= uint32(places[k*4*6+b*6+cell]) << (8 * b)
		}
		return math.Float32frombits(bits)
	}
	if at(0, 0) != 83 || at(1, 0) != 175 || at(0, 5) != 82 || at(1, 5) != 180 {
		t.Errorf("the first cell is at %v, %v and the last at %v, %v", at(0, 0), at(1, 0), at(0, 5), at(1, 5))
	}
	m.Places[1] = nil
	if _, err := encodeMap(m); err == nil {
		t.Error("latitudes without longitudes were encoded")
	}
}

func TestLargeMapsAreThinnedAndSaySo(t *testing.T) {
	const side = 3000
	axis := make([]float64, side)
	for i := range axis {
		axis[i] = float64(i)
	}
	n := side * side
	packed, err := encodeMap(Map{Lat: axis, Lon: axis, Value: make([]float32, n), Sigma: make([]float32, n), Flags: make([]byte, n)})
	must(t, err)
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	body, err := io.ReadAll(unpacked)
	must(t, err)
	var head mapHeader
	length := binary.LittleEndian.Uint32(body)
	must(t, json.Unmarshal(body[4:4+length], &head))
	if head.Every != 2 || head.Rows != side/2 || head.Lat[0] != side-2 || len(body) != 4+int(length)+9*head.Rows*head.Cols {
		t.Errorf("every %d, %d rows from %v, %d bytes", head.Every, head.Rows, head.Lat[0], len(body))
	}
	if _, err := encodeMap(Map{Lat: axis, Lon: axis}); err == nil {
		t.Error("a map without values was encoded")
	}
}

func TestSkillPlotPutsErrorsWhereTheyBelong(t *testing.T) {
	f := &fakeSources{}
	points, _ := f.Skill(t.Context(), "", skillsShown)
	svg := string(plotSkill("a<b", points))
	if strings.Contains(svg, "<script>") || strings.Contains(svg, "a<b") || strings.Contains(svg, "NaN") {
		t.Errorf("the plot is %s", svg)
	}
	if got := strings.Count(svg, "<circle"); got != 2 {
		t.Errorf("%d dots, want those of the two days with an error", got)
	}
	a := newSkillAxes([]Skill{{Day: may(1), MSE: 0.1}, {Day: may(11), MSE: 1}})
	if low, high := a.y(0.1), a.y(1); low <= high || a.x(may(6)) != plotLeft+plotInner/2.0 {
		t.Errorf("0.1 is at %v and 1 at %v, the middle day at %v", low, high, a.x(may(6)))
	}
	if got := medianError([]Skill{{Day: may(1), MSE: 9}, {Day: may(20), MSE: 1}, {Day: may(21), MSE: 3}, {Day: may(22), MSE: 2}}, 3); got != 2 {
		t.Errorf("the median of the last week is %v, want 2", got)
	}
	if get := plotSkill("x", points[1:2]); get != "" {
		t.Errorf("a plot of nothing is %q", get)
	}
}

func TestPathsReadBack(t *testing.T) {
	u, err := url.Parse(hostilePath(7))
	must(t, err)
	id, field, err := granuleOf(u.Query())
	if err != nil || id != (GranuleID{"blk-chl", hostile, 7}) || field != 0 {
		t.Errorf("granuleOf() = %+v, %d, %v", id, field, err)
	}
}

// Of many datasets the page has few plots: of the one that was asked for, else of those
// that drift before others. The rest are a click away.
func TestThePageOfModelsHasFewPlots(t *testing.T) {
	var sets []Dataset
	for i := range 20 {
		sets = append(sets, Dataset{Name: fmt.Sprintf("sea%d", i), Skill: &Skill{}})
	}
	sets[17].Drift = "half as good as in spring"
	h := newHandler(Sources{Status: func(context.Context) (Status, error) { return Status{Datasets: sets}, nil }, Models: &fakeSources{}}, "", slog.New(slog.DiscardHandler)).routes()
	for path, want := range map[string][]string{"/models": {"sea17", "sea0", "sea1", "sea2", "sea3", "sea4"}, "/models?dataset=sea9": {"sea9"}} {
		body := get(t, h, path).Body.String()
		var got []string
		for _, part := range strings.Split(body, "<figcaption>")[1:] {
			got = append(got, part[:strings.IndexAny(part, " <")])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the plots of %q, want %q", path, got, want)
		}
		if got := strings.Count(body, `<a href="/models?dataset=`); got != len(sets)-len(want) {
			t.Errorf("%s has %d links to others, want %d", path, got, len(sets)-len(want))
		}
	}
}

// Promoted, refused and not judged are three things, and look like three.
func TestTheOutcomesOfTrainingsLookDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, state := range []string{"promoted", "refused", "unjudged"} {
		status := func(context.Context) (Status, error) {
			return Status{Ready: true, Datasets: []Dataset{{Name: "sea", Training: "not trained now", Train: &Training{
				State: "idle", Schedule: "every Sunday at 02:00 UTC", Seen: []string{"12 new granules"},
				Last: &Outcome{State: state, Ended: may(3), Version: "v9", Reasons: []string{"against: 4.0 % more error than the champion on 31 days", "ok: 5000 cells were scored"}},
			}}}}, nil
		}
		h := newHandler(Sources{Status: status, Models: &fakeSources{}, Actions: &fakeSources{}}, "", slog.New(slog.DiscardHandler)).routes()
		body := get(t, h, "/models").Body.String()
		for _, want := range []string{"every Sunday at 02:00 UTC", "12 new granules", `<span class="bad">4.0 % more error than the champion on 31 days</span>`, "<span>5000 cells were scored</span>"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the page lacks %q", state, want)
			}
		}
		if strings.Contains(body, "/actions/train") {
			t.Error("a page without a token file offers to steer")
		}
		_, after, _ := strings.Cut(body, "<dt>Last</dt><dd>")
		tag, _, _ := strings.Cut(after, "</strong>")
		for other, look := range seen {
			if look == tag || strings.SplitN(look, ">", 2)[0] == strings.SplitN(tag, ">", 2)[0] {
				t.Errorf("%s looks like %s: %s", state, other, tag)
			}
		}
		seen[state] = tag
	}
	for state, class := range map[string]string{"champion of sea": "good", "refused": "warn", "not judged": "bad", "pinned": ""} {
		if got := stateClass(state); got != class {
			t.Errorf("%s has the class %q", state, got)
		}
	}
}
