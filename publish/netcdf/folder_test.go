package netcdf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/publish/netcdf/compliance"
)

// joined is what xarray finds in a folder of products.
type joined struct {
	Sizes       map[string]int `json:"sizes"`
	Times       []string       `json:"times"`
	StepDays    []float64      `json:"step_days"`
	Bounds      [][2]string    `json:"bounds"`
	Meanings    []string       `json:"mode_meanings"`
	ModeDims    []string       `json:"mode_dims"`
	Modes       []int          `json:"modes"`
	Models      []string       `json:"models"`
	Revisions   []int          `json:"revisions"`
	Observed    []float64      `json:"observed"`
	WindowStart []string       `json:"window_start"`
	WindowEnd   []string       `json:"window_end"`
	NoSigma     int            `json:"values_without_sigma"`
	Values      []int          `json:"values"`
}

// openFolder joins the products of a folder along time.
func openFolder(t *testing.T, folder, variable string) joined {
	t.Helper()
	python := compliance.Python(t)
	if exec.Command(python, "-c", "import xarray, dask").Run() != nil {
		t.Skipf("%s has no xarray and dask: pip install -r ops/setup/requirements-test.txt into it to run this test", python)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(python, filepath.Join("testdata", "open_folder.py"), folder, variable)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("open_mfdataset: %v\n%s", err, &stderr)
	}
	var j joined
	if err := json.Unmarshal(out, &j); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return j
}

// A year as a service leaves it: days on which nothing was seen, the last days
// still near-real-time, revisions, and a model in place of interpolation halfway.
func TestAYearOfProductsIsOneSeries(t *testing.T) {
	t.Parallel()
	const model = "black-sea-chl-20240601-1f0c2d3e"
	first, n := day(2024, 1, 1), 366
	if testing.Short() {
		n = 31
	}
	isEmpty := func(i int) bool { return i%7 == 3 }
	folder := t.TempDir()
	for i := range n {
		p := blackSea()
		if isEmpty(i) {
			p = emptyDay()
		}
		at := first.AddDate(0, 0, i)
		p.Times = []time.Time{at}
		p.Source.Vars[0].Raw = raw("int", float64(at.Sub(day(1981, 1, 1))/time.Second))
		p.Mode, p.Revision, p.Windows = Delayed, 2, []Window{{at.AddDate(0, 0, -10), at.AddDate(0, 0, 5)}}
		if i >= n-5 {
			p.Mode, p.Revision, p.Windows[0].Last = NearRealTime, 1, at
		}
		if i >= n/2 {
			p.Model = model
		}
		if err := WriteProduct(filepath.Join(folder, fmt.Sprintf("%s_l4.nc", at.Format("20060102"))), p); err != nil {
			t.Fatal(err)
		}
	}
	got := openFolder(t, folder, "CHL")
	if len(got.Times) != n || got.Times[0] != "2024-01-01" || got.Times[n-1] != first.AddDate(0, 0, n-1).Format(time.DateOnly) || !slices.Equal(got.StepDays, []float64{1}) {
		t.Fatalf("%d days in steps of %v, want %d without a hole", len(got.Times), got.StepDays, n)
	}
	if got.Sizes["time"] != n || got.Sizes["lat"] != rows || got.Sizes["lon"] != cols {
		t.Errorf("the variable is %v", got.Sizes)
	}
	if !slices.Equal(got.ModeDims, []string{"time"}) || !slices.Equal(got.Meanings, []string{NearRealTime, Delayed}) {
		t.Errorf("mode runs along %v and means %v", got.ModeDims, got.Meanings)
	}
	sea, seen := 0, 0
	for _, flags := range blackSea().Flags {
		if flags&Land == 0 {
			sea++
		}
		if Observed(flags) {
			seen++
		}
	}
	for i := range n {
		at := first.AddDate(0, 0, i)
		mode, revision, last := Delayed, 2, at.AddDate(0, 0, 5)
		if i >= n-5 {
			mode, revision, last = NearRealTime, 1, at
		}
		filler, observed := "oi", float64(seen)/float64(sea)
		if i >= n/2 {
			filler = model
		}
		if isEmpty(i) {
			observed = 0
		}
		if got.Meanings[got.Modes[i]] != mode || got.Revisions[i] != revision || got.Models[i] != filler || abs(got.Observed[i]-observed) > 1e-6 {
			t.Fatalf("%s: %s, revision %d by %q with %g observed; want %s, %d by %q with %g", got.Times[i], got.Meanings[got.Modes[i]],
				got.Revisions[i], got.Models[i], got.Observed[i], mode, revision, filler, observed)
		}
		if got.WindowStart[i] != at.AddDate(0, 0, -10).Format(time.DateOnly) || got.WindowEnd[i] != last.Format(time.DateOnly) ||
			got.Bounds[i] != [2]string{got.Times[i], at.AddDate(0, 0, 1).Format(time.DateOnly)} {
			t.Fatalf("%s: window %s to %s, bounds %v", got.Times[i], got.WindowStart[i], got.WindowEnd[i], got.Bounds[i])
		}
		if got.Values[i] == 0 {
			t.Fatalf("%s has no value", got.Times[i])
		}
	}
	if got.NoSigma != 0 {
		t.Errorf("%d values have no uncertainty", got.NoSigma)
	}
}

func TestProductsOfMapsWithoutTimeAreASeriesToo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range 5 {
		p := smap()
		p.Times, p.Step = []time.Time{day(2021, 1, 5).AddDate(0, 0, 8*i)}, 8*dayLength
		p.Windows = []Window{{p.Times[0], p.Times[0]}}
		if err := WriteProduct(filepath.Join(folder, fmt.Sprintf("%d.nc", i)), p); err != nil {
			t.Fatal(err)
		}
	}
	got := openFolder(t, folder, "smap_sss")
	if len(got.Times) != 5 || !slices.Equal(got.StepDays, []float64{8}) || got.Bounds[1] != [2]string{"2021-01-13", "2021-01-21"} {
		t.Errorf("times %v in steps of %v days, the second covers %v", got.Times, got.StepDays, got.Bounds[1])
	}
}

func abs(x float64) float64 { return max(x, -x) }
