package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lacuna/pipeline/ingest/products"
	"lacuna/pipeline/ingest/sandbox"
)

// Each edit of a sound file makes it bad in one way; the message must name
// the file, the problem and the remedy.
func TestBadFilesSayWhatIsWrongAndWhatToDo(t *testing.T) {
	cdl, err := os.ReadFile("testdata/plankton.cdl")
	must(t, err)
	tests := []struct {
		name            string
		old, new        string // edit of the CDL text, applied to all occurrences
		opt             Options
		problem, remedy string
	}{
		{name: "no such variable", opt: Options{Variable: "NANO"}, problem: "no variable NANO", remedy: "CHL, MICRO, QC, flags"},
		{name: "variable of the product missing", opt: Options{Product: products.GHRSST}, problem: "no variable sea_surface_temperature", remedy: "set variable"},
		{
			name: "two variables may be meant", old: `CHL:standard_name = "mass_concentration_of_chlorophyll_a_in_sea_water" ;`, new: `CHL:standard_name = "x" ;`,
			problem: "CHL, MICRO may be meant", remedy: "set variable",
		},
		{
			name: "no latitude", old: "lat:standard_name = \"latitude\" ;\n\t\tlat:units = \"degrees_north\"", new: `lat:standard_name = "height"`,
			problem: "no latitude coordinate", remedy: "standard_name",
		},
		{name: "curvilinear", old: "float lat(lat)", new: "float lat(lat, lon)", problem: "two-dimensional", remedy: "regular grid"},
		{
			name: "longitude first", old: "CHL(time, lat, lon)", new: "CHL(time, lon, lat)", opt: Options{Variable: "CHL"},
			problem: "longitude before its latitude", remedy: "ncpdq -a time,lat,lon",
		},
		{
			name: "several levels", old: "CHL(time, lat, lon)", new: "CHL(bnds, lat, lon)", opt: Options{Variable: "CHL"},
			problem: "2 values along bnds", remedy: "ncks -d bnds,0",
		},
		{name: "not on the grid", opt: Options{Variable: "lat_bnds"}, problem: "not on the grid", remedy: "CHL, MICRO"},
		{name: "latitude that turns back", old: "40, 41, 42.5", new: "40, 41, 40.5", problem: "does not run one way", remedy: "download"},
		{name: "NaN in a coordinate", old: "40, 41, 42.5", new: "40, NaN, 42.5", problem: "NaN", remedy: "download"},
		{name: "two maps of one time", old: "1364256000, 1364342400", new: "1364256000, 1364256000", problem: "two maps for 2024-03-26", remedy: "keep one"},
		{name: "no date for a time", old: "1364256000, 1364342400", new: "_, 1364342400", problem: "no date", remedy: "download"},
		{name: "calendar of models", old: "Gregorian", new: "360_day", problem: "360_day", remedy: "setcalendar"},
		{name: "units that are no time", old: "seconds since 1981-01-01 00:00:00", new: "fortnights since 1981-01-01", problem: "fortnights", remedy: "days since"},
		{
			name: "no time at all", old: "time:standard_name = \"time\" ;\n\t\ttime:units = \"seconds since 1981-01-01 00:00:00\" ;\n\t\ttime:calendar = \"Gregorian\" ;\n\t\ttime:axis = \"T\"",
			new: `time:standard_name = "x"`, problem: "no variable says when", remedy: "time variable",
		},
		{name: "no such quality variable", opt: Options{Quality: []string{"quality_level >= 4"}}, problem: "quality_level", remedy: "CHL, MICRO, QC, flags"},
		{name: "bits of a float", opt: Options{Quality: []string{"MICRO & 4 == 0"}}, problem: "has none", remedy: "change quality"},
		{name: "scale of zero", old: "CHL:valid_min = 0.01f", new: "CHL:scale_factor = 0.f", problem: "scale_factor 0", remedy: "download"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := string(cdl)
			if tt.old != "" {
				text = strings.ReplaceAll(text, tt.old, tt.new)
			}
			path := ncgen(t, "nc4", "granule.nc", text)
			_, err := reader(t, "decode").Read(t.Context(), path, tt.opt)
			b := wantBad(t, err)
			if b.File != "granule.nc" || !strings.Contains(b.Problem, tt.problem) || !strings.Contains(b.Remedy, tt.remedy) {
				t.Errorf("got %q\nwant a problem with %q and a remedy with %q", b, tt.problem, tt.remedy)
			}
			if strings.Contains(b.Error(), "\n") {
				t.Errorf("message is not one line: %q", b)
			}
		})
	}
}

// A day under clouds is a granule like any other: its times and its grid are
// known, and its note says that nothing was seen.
func TestGranuleWithoutAnObservationIsRead(t *testing.T) {
	cdl, err := os.ReadFile("testdata/plankton.cdl")
	must(t, err)
	emptyDay := strings.NewReplacer("7.25", "-999", "-999, 8 ;", "-999, -999 ;").Replace(string(cdl))
	g := mustRead(t, ncgen(t, "nc4", "a.nc", emptyDay), Options{})
	if n := g.Fields[1].ObservedMask().Count(); len(g.Fields) != 2 || n != 0 || g.Empty() {
		t.Errorf("%d fields, %d values in the second, empty %v; want 2 and none, and not empty", len(g.Fields), n, g.Empty())
	}
	const note = "holds no observation"
	if strings.Contains(strings.Join(g.Notes, "\n"), note) {
		t.Errorf("one empty map among others is noted: %q", g.Notes)
	}
	whole := g
	empty := strings.NewReplacer("0.5, 0.01, 100, 0.005", "_, _, _, _", "1, 2, 3, 101", "_, _, _, _").Replace(emptyDay)
	g = mustRead(t, ncgen(t, "nc4", "a.nc", empty), Options{})
	if !g.Empty() || len(g.Fields) != 2 || !g.Fields[0].Grid.Same(whole.Fields[0].Grid) || !g.Fields[1].Time.Equal(whole.Fields[1].Time) {
		t.Errorf("empty %v, %d fields at %v", g.Empty(), len(g.Fields), g.Fields[0].Time)
	}
	if notes := strings.Join(g.Notes, "\n"); !strings.Contains(notes, note+": all its values are missing") {
		t.Errorf("notes: %s", notes)
	}
	g = mustRead(t, ncgen(t, "nc4", "a.nc", string(cdl)), Options{Range: &[2]float64{1e6, 2e6}})
	if notes := strings.Join(g.Notes, "\n"); !g.Empty() || !strings.Contains(notes, "check valid_range and quality") {
		t.Errorf("a range that refuses everything: empty %v, notes: %s", g.Empty(), notes)
	}
}

func TestFilesThatAreNotNetCDF(t *testing.T) {
	tests := []struct{ name, content, problem, remedy string }{
		{"empty", "", "it is empty", "download it again"},
		{"HTML", "\n<!DOCTYPE html><html><body>503</body></html>", "an HTML page, not NetCDF", "the server probably sent an error page"},
		{"S3 error", `<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`, "XML", "error page"},
		{"gzip", "\x1f\x8b\x08\x00", "gzip", "gunzip"},
		{"LFS pointer", "version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer", "git lfs pull"},
		{"noise", "\x00\x01\x02\x03hello", `begins with "\x00\x01`, "download"},
		{"only the magic of HDF5", hdf5Magic, "truncated", "download"},
		{"only the magic of classic", "CDF\x01", "truncated", "download"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.nc")
			must(t, os.WriteFile(path, []byte(tt.content), 0o600))
			_, err := reader(t, "decode").Read(t.Context(), path, Options{})
			if b := wantBad(t, err); !strings.Contains(b.Problem, tt.problem) || !strings.Contains(b.Remedy, tt.remedy) {
				t.Errorf("got %q\nwant a problem with %q and a remedy with %q", b, tt.problem, tt.remedy)
			}
		})
	}
}

func TestTruncatedFilesAreFoundWhereverTheyEnd(t *testing.T) {
	for _, kind := range []string{"classic", "64-bit-offset", "cdf5", "nc4"} {
		whole, err := os.ReadFile(fixture(t, kind, "plankton"))
		must(t, err)
		for _, keep := range []float64{0.01, 0.1, 0.5, 0.9, 0.99} {
			path := filepath.Join(t.TempDir(), "cut.nc")
			must(t, os.WriteFile(path, whole[:int(keep*float64(len(whole)))], 0o600))
			_, err = reader(t, "decode").Read(t.Context(), path, Options{})
			if b := wantBad(t, err); !strings.Contains(b.Problem, "truncated") {
				t.Errorf("%s cut to %g: %v", kind, keep, b)
			}
		}
	}
}

// What begins an HDF5 file, and the lists of a classic header.
const (
	hdf5Magic                 = "\x89HDF\r\n\x1a\n"
	tagDimension, tagVariable = 10, 11
)

// absurd is a classic header by hand: two dimensions of a million, and one
// double variable on them at byte 1024.
func absurd() []byte {
	be := binary.BigEndian
	b := append([]byte("CDF\x02"), 0, 0, 0, 0)
	name := func(s string) {
		b = be.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	b = be.AppendUint32(be.AppendUint32(b, tagDimension), 2)
	for _, d := range []string{"lat", "lon"} {
		name(d)
		b = be.AppendUint32(b, 1_000_000)
	}
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // no attributes
	b = be.AppendUint32(be.AppendUint32(b, tagVariable), 1)
	name("CHL")
	b = be.AppendUint32(b, 2)
	b = be.AppendUint32(be.AppendUint32(b, 0), 1)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = be.AppendUint32(be.AppendUint32(b, 6), 0xffffffff) // double; size does not fit
	return be.AppendUint64(b, 1024)
}

func TestAbsurdDimensionsAreRefusedBeforeMemoryIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.nc")
	must(t, os.WriteFile(path, append(absurd(), make([]byte, 4096)...), 0o600))
	_, err := reader(t, "decode").Read(t.Context(), path, Options{})
	if b := wantBad(t, err); !strings.Contains(b.Problem, "8000000001024 bytes") {
		t.Errorf("classic: %v", b)
	}

	// NetCDF-4 does not store cells that were never written, so a small and
	// undamaged file may claim as much.
	path = ncgen(t, "nc4", "huge.nc", `netcdf huge { dimensions: time = 1 ; lat = 1000000 ; lon = 1000000 ;
variables: double lat(lat) ; lat:units = "degrees_north" ; double lon(lon) ; lon:units = "degrees_east" ;
 float CHL(time, lat, lon) ; CHL:_ChunkSizes = 1, 1000, 1000 ; }`)
	start := time.Now()
	_, err = reader(t, "decode").Read(t.Context(), path, Options{})
	if b := wantBad(t, err); !strings.Contains(b.Problem, "absurd") {
		t.Errorf("NetCDF-4: %v", b)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestGranuleBeyondTheMemoryLimitSaysSo(t *testing.T) {
	h := &header{
		Dims: []Dim{{Name: "lat", Len: 20000}, {Name: "lon", Len: 20000}},
		Vars: []headerVar{{Name: "lat", Type: "float", Dims: []int{0}}, {Name: "lon", Type: "float", Dims: []int{1}}, {Name: "CHL", Type: "float", Dims: []int{0, 1}}},
	}
	_, err := request{Want: wantGranule, FileBytes: 1 << 30, MemoryBytes: 2 << 30}.plan(h)
	if b := wantBad(t, err); !strings.Contains(b.Problem, "3433 MiB") || !strings.Contains(b.Remedy, "memory_mib") {
		t.Errorf("got %v", b)
	}
}

func TestChildrenThatMisbehaveCostOneGranule(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	tests := []struct{ child, problem string }{
		{"crash", "did not survive it (exit status 2: HDF5-DIAG: something[31m odd SIGSEGV: segmentation violation"},
		{"kill", "signal: killed"},
		{"exit", "exit status 3"},
		{"hang", "took longer than 300ms"},
		{"garbage", "breaks the protocol"},
		{"boast", "breaks the protocol"},
		{"half", "did not survive"},
	}
	for _, tt := range tests {
		t.Run(tt.child, func(t *testing.T) {
			r := reader(t, tt.child, func(c *Config) {
				if tt.child == "hang" {
					c.Timeout = 300 * time.Millisecond
				}
			})
			_, err := r.Read(t.Context(), path, Options{})
			if b := wantBad(t, err); !strings.Contains(b.Problem, tt.problem) || b.File != "plankton.nc" {
				t.Errorf("got %q, want %q", b, tt.problem)
			}
		})
	}
}

func TestChildThatSpinsIsStoppedByItsCPULimit(t *testing.T) {
	r := reader(t, "spin", func(c *Config) { c.CPUTime = time.Second })
	_, err := r.Read(t.Context(), fixture(t, "nc4", "plankton"), Options{})
	if b := wantBad(t, err); !strings.Contains(b.Problem, "more than 1s of CPU time") {
		t.Errorf("got %v", b)
	}
}

// The kernel kills a process for want of memory, and an operator by mistake: another
// one decodes the file.
func TestADecoderThatSomebodyKilledDoesNotBlameTheFile(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	killed := make(chan int, 1)
	time.AfterFunc(250*time.Millisecond, func() { killed <- killChildren("slow") })
	got, err := reader(t, "slow").Read(t.Context(), path, Options{})
	if n := <-killed; n == 0 {
		t.Fatal("no decoder was there to be killed")
	}
	must(t, err)
	want, err := reader(t, "decode").Read(t.Context(), path, Options{})
	must(t, err)
	if got.SHA256 != want.SHA256 || len(got.Fields) != len(want.Fields) || !slices.Equal(got.Fields[0].ObservedMask(), want.Fields[0].ObservedMask()) {
		t.Errorf("after a kill %d fields were read with sha256 %s, want %d with %s", len(got.Fields), got.SHA256, len(want.Fields), want.SHA256)
	}
}

// killChildren kills the children of a kind, and returns how many there were.
func killChildren(kind string) (n int) {
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range processes {
		text, _ := os.ReadFile(stat)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after) // state, parent…
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) && strings.HasSuffix(string(line), "\x00"+kind+"\x00") && syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}

func TestOurOwnFailuresDoNotBlameTheFile(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	missing, err := NewReader(DefaultConfig(), []string{filepath.Join(t.TempDir(), "no-such-program")})
	must(t, err)
	tests := map[string]func() error{
		"cancelled": func() error { _, err := reader(t, "decode").Read(cancelled, path, Options{}); return err },
		"no child":  func() error { _, err := missing.Read(t.Context(), path, Options{}); return err },
		"no file":   func() error { _, err := reader(t, "decode").Read(t.Context(), path+"x", Options{}); return err },
		"options":   func() error { _, err := reader(t, "decode").Read(t.Context(), path, Options{Product: "x"}); return err },
	}
	for name, read := range tests {
		err := read()
		if b := (*BadGranule)(nil); err == nil || errors.As(err, &b) {
			t.Errorf("%s: got %v, want an error that is no *BadGranule", name, err)
		}
	}
}

// A program with a wrong command for the child would run itself as a child,
// which would do the same without end.
func TestChildStartsNoChildren(t *testing.T) {
	t.Setenv(sandbox.Mark, "1")
	_, err := reader(t, "decode").Read(t.Context(), fixture(t, "nc4", "plankton"), Options{})
	if err == nil || !strings.Contains(err.Error(), "should have called RunChild") {
		t.Errorf("got %v", err)
	}
}

func TestNamedPipeIsRefusedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.nc")
	must(t, syscall.Mkfifo(path, 0o600))
	_, err := reader(t, "decode").Read(t.Context(), path, Options{})
	if b := wantBad(t, err); !strings.Contains(b.Problem, "regular file") {
		t.Errorf("got %v", b)
	}
}

func TestHostileNamesAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x.nc", "a/b.nc", `a\b.nc`, "a\nb.nc", "a\x1b[31m.nc", "-rf.nc", "a\xff.nc", strings.Repeat("a", 256), "a\u202eb.nc"} {
		b := wantBad(t, CheckName(name))
		if strings.ContainsAny(b.Error(), "\n\x1b\u202e") {
			t.Errorf("message for %q would garble a terminal: %s", name, b)
		}
	}
	for _, name := range []string{"a.nc", "20240326_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D.nc", "Ægir 1.nc", "file#mode=bytes.nc", "http:x.nc"} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
}

// Names that netCDF-C would take for a URL or for options never reach it.
func TestNameIsOnlyAName(t *testing.T) {
	cdl, err := os.ReadFile("testdata/plankton.cdl")
	must(t, err)
	path := ncgen(t, "nc4", "plain.nc", string(cdl))
	odd := filepath.Join(filepath.Dir(path), "file:x.nc#mode=zarr,s3")
	must(t, os.Rename(path, odd))
	checkPlankton(t, mustRead(t, odd, Options{}))
}
