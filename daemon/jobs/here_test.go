package jobs

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
)

// smallJob is a job that takes milliseconds.
func smallJob(day int) (fill.Job, Packing) {
	at := time.Date(2024, 5, day, 0, 0, 0, 0, time.UTC)
	grid := field.Grid{Lat: []float64{40, 41}, Lon: []float64{10, 11}}
	maps := []string{"time", "lat", "lon"}
	raw := func(data any) []byte {
		out, _ := binary.Append(nil, binary.LittleEndian, data)
		return out
	}
	g := ingest.Granule{
		Name: at.Format("20060102") + ".nc", SHA256: strings.Repeat("0", 64),
		Fields: []field.Field{{Grid: grid, Time: at, Values: []float32{1, 2, field.NaN(), 4}}},
		Source: ingest.Source{
			Variable: "SST", Dims: []ingest.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: 2}, {Name: "lon", Len: 2}},
			Vars: []ingest.Var{
				{Name: "time", Type: "double", Dims: maps[:1], Raw: raw([]float64{24 * float64(day-1)}), Attrs: []ingest.Attr{{Name: "units", Value: "hours since 2024-05-01"}}},
				{Name: "lat", Type: "double", Dims: maps[1:2], Raw: raw(grid.Lat), Attrs: []ingest.Attr{{Name: "units", Value: "degrees_north"}}},
				{Name: "lon", Type: "double", Dims: maps[2:], Raw: raw(grid.Lon), Attrs: []ingest.Attr{{Name: "units", Value: "degrees_east"}}},
				{Name: "SST", Type: "float", Dims: maps, Raw: raw([]float32{1, 2, field.NaN(), 4}), Attrs: []ingest.Attr{{Name: "units", Value: "degree_Celsius"}}},
			},
		},
	}
	cfg := infer.DefaultConfig()
	cfg.Method = "climatology"
	job := fill.Job{Dataset: "sea", Granule: g, Sea: field.Mask{true, true, true, true}, Fill: cfg, Revision: 1, Created: at}
	return job, Packing{Granule: g.Name, Product: g.Name, Filled: at}
}

// unheld holds no training: there is none.
func unheld() (release func()) { return func() {} }

// here returns a place for jobs whose products lie in a folder.
func here(t *testing.T, beat func()) (h *Here, folder string) {
	t.Helper()
	folder = t.TempDir()
	return NewHere(func() (string, error) { return os.MkdirTemp(folder, "put-") }, nil, unheld, beat), folder
}

func begin(t *testing.T, h *Here, day int) (m Message, answers chan Result) {
	t.Helper()
	m, err := h.Pack(smallJob(day))
	if err != nil {
		t.Fatal(err)
	}
	answers = make(chan Result, 1)
	if err := h.Send(t.Context(), m, false, func(r Result) { answers <- r }); err != nil {
		t.Fatal(err)
	}
	return m, answers
}

func left(t *testing.T, folder string) int {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A product is moved to where it is stored, and nothing of its job stays; a revision has
// one job at a time.
func TestAJobHereLeavesItsProductAndNothingElse(t *testing.T) {
	h, folder := here(t, func() {})
	m, answers := begin(t, h, 1)
	if _, err := h.Pack(smallJob(1)); err == nil {
		t.Error("a second job of the same revision is packed")
	}
	r := <-answers
	if r.Failed != "" || r.Told.Dataset != "sea" || r.Covered != 1 {
		t.Fatalf("the result is %+v", r)
	}
	path := filepath.Join(t.TempDir(), "stored")
	if err := h.Place(t.Context(), Result{Job: "another"}, path); err == nil {
		t.Error("the product of a job that is not there is placed")
	}
	if err := h.Place(t.Context(), r, path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Errorf("the product is %v, %v", info, err)
	}
	if err := h.Close(m.Dataset, m.Granule, m.Revision); err != nil || left(t, folder) != 0 {
		t.Errorf("after Close, %v, %d folders are left", err, left(t, folder))
	}
	if _, err := h.Pack(smallJob(1)); err != nil {
		t.Errorf("the revision cannot be made again: %v", err)
	}
}

// A panic in a job is its failure, and not the end of the service.
func TestAPanicOfAJobHereIsItsFailure(t *testing.T) {
	h, _ := here(t, func() { panic("a bug") })
	_, answers := begin(t, h, 1)
	if r := <-answers; !strings.Contains(r.Failed, "panic: a bug") {
		t.Errorf("the result is %+v", r)
	}
}

// What is dropped gives no answer and leaves no file, whether it runs, has ended, or was
// not begun.
func TestDroppedJobsGiveNoAnswer(t *testing.T) {
	running, goOn := make(chan struct{}, 9), make(chan struct{})
	h, folder := here(t, func() {
		running <- struct{}{}
		<-goOn
	})
	_, first := begin(t, h, 1)
	<-running // and the second waits for its turn
	_, second := begin(t, h, 2)
	if _, err := h.Pack(smallJob(3)); err != nil {
		t.Fatal(err)
	}
	dropped := make(chan error, 1)
	go func() { dropped <- h.Drop() }()
	select {
	case err := <-dropped:
		t.Fatalf("dropped, %v, and a job still runs", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	if err := <-dropped; err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-first:
		t.Errorf("the first answers %+v", r)
	case r := <-second:
		t.Errorf("the second answers %+v", r)
	default:
	}
	if n := left(t, folder); n != 0 {
		t.Errorf("%d folders are left", n)
	}
	h.beat = func() {}
	if _, answers := begin(t, h, 1); (<-answers).Failed != "" {
		t.Error("after that no job is done")
	}
	if err := h.Drop(); err != nil || left(t, folder) != 0 {
		t.Errorf("a result that nobody took: %v, %d folders are left", err, left(t, folder))
	}
}

// A folder that cannot be made is told.
func TestAJobHereWithoutAFolderFails(t *testing.T) {
	full := errors.New("no room")
	h := NewHere(func() (string, error) { return "", full }, nil, unheld, func() {})
	_, answers := begin(t, h, 1)
	if r := <-answers; r.Failed != full.Error() {
		t.Errorf("the result is %+v", r)
	}
}
