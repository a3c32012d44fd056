package input

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/covariates"
	"lacuna/daemon/feed"
	"lacuna/internal/cdl"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/simulate"
)

func TestAFlagNamesACovariate(t *testing.T) {
	tests := []struct {
		text  string
		want  covariate.Config
		wrong string // part of the message; empty: valid
	}{
		{text: "sst=sst.nc:analysed_sst", want: covariate.Config{Name: "sst", File: "sst.nc", Variable: "analysed_sst"}},
		{text: "sst=a:b/sst.nc", want: covariate.Config{Name: "sst", File: "a:b/sst.nc"}},
		{text: "sst={year}/{yearday}.nc:t,gradient", want: covariate.Config{Name: "sst", File: "{year}/{yearday}.nc", Variable: "t", Gradient: true}},
		{text: "depth=etopo.nc:z,bathymetry,gradient", want: covariate.Config{Name: "depth", File: "etopo.nc", Variable: "z", Static: covariate.Bathymetry, Gradient: true}},
		{text: "coast=distance_to_coast", want: covariate.Config{Name: "coast", Static: covariate.DistanceToCoast}},
		{text: "sst.nc", wrong: "must be NAME=FILE:VARIABLE"},
		{text: "SST=sst.nc", wrong: "name is"},
		{text: "day=day_of_year,gradient", wrong: "the same everywhere"},
	}
	for _, tt := range tests {
		tt.want.MaxAgeDays = covariate.DefaultConfig().MaxAgeDays
		got, err := parseCovariate(tt.text)
		if tt.wrong == "" && (err != nil || got != tt.want) {
			t.Errorf("%s is %+v, %v; want %+v", tt.text, got, err, tt.want)
		}
		if err := (Covariates{texts: []string{tt.text}}).Validate(); (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.wrong)
		}
	}
	if err := (Covariates{texts: []string{"a=x.nc", "a=y.nc"}}).Validate(); err == nil || !strings.Contains(err.Error(), "another covariate has") {
		t.Errorf("two of one name: %v", err)
	}
}

// Real files go through the confined reader: one of other units gives the same maps, and
// one whose axes are swapped is left out with the command that mends it.
func TestRealFilesOfACovariate(t *testing.T) {
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 32, Days: 2, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := cli.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	maps := func(change func(f *cdl.File)) (values []float32, said string) {
		t.Helper()
		g, err := world.Companion(0, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		change(&g.File)
		path := filepath.Join(t.TempDir(), g.Name)
		if err := feed.Write(path, g); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		c := (&Covariates{texts: []string{"sst=" + path + ":analysed_sst"}}).Open(reader, &stderr)
		a, err := c.Terms(t.Context(), covariates.Request{Grid: world.Grid(), Sea: world.Sea(), Times: []time.Time{g.Seen.Time}, Units: func(string) string { return "kelvin" }})
		if err != nil {
			t.Fatal(err)
		}
		return a.Terms[0].Maps[0], stderr.String()
	}
	want, said := maps(func(*cdl.File) {})
	if want == nil || said != "" {
		t.Fatalf("a good file says %q", said)
	}
	celsius, said := maps(func(f *cdl.File) {
		v := &f.Vars[len(f.Vars)-1]
		for i := range v.Attrs {
			if v.Attrs[i].Name == "units" {
				v.Attrs[i].Value = "degree_Celsius"
			}
		}
		for at := 0; at < len(v.Raw); at += 4 {
			if k := math.Float32frombits(binary.LittleEndian.Uint32(v.Raw[at:])); k > 0 { // else the fill value
				binary.LittleEndian.PutUint32(v.Raw[at:], math.Float32bits(k-273.15))
			}
		}
	})
	for i, v := range celsius {
		if d := float64(v - want[i]); said != "" || math.Abs(d) > 1e-3 || (v != v) != (want[i] != want[i]) {
			t.Fatalf("in degrees Celsius cell %d is %g, want %g; said %q", i, v, want[i], said)
		}
	}
	swapped, said := maps(func(f *cdl.File) {
		v := &f.Vars[len(f.Vars)-1]
		v.Dims = []string{"time", "lon", "lat"}
		v.Raw = transposed(v.Raw, f.Dims[1].Len, f.Dims[2].Len)
	})
	if swapped != nil || strings.Count(said, "\n") != 1 || !strings.Contains(said, "longitude before its latitude; swap them with: ncpdq") {
		t.Errorf("swapped axes give a map %v, and say %q", swapped != nil, said)
	}
}

// transposed returns a map of four-byte numbers with rows as columns.
func transposed(raw []byte, rows, cols int) []byte {
	out := make([]byte, 0, len(raw))
	for j := range cols {
		for i := range rows {
			at := 4 * (i*cols + j)
			out = append(out, raw[at:at+4]...)
		}
	}
	return out
}
