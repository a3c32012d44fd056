package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"lacuna/daemon"
	"lacuna/daemon/fill"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/realdata"
	"lacuna/publish/netcdf/compliance"
)

// realFiles are the granules in ../shared/data: three sensors, two formats,
// axes with and without attributes, one to 365 days.
var realFiles = []string{
	"bigelow_gom_sst/gom_modis_chl_monthly_2018.nc",
	"bigelow_gom_sst/gom_modis_sst_daily_201808.nc",
	"dineof_alboran/alboranSST_small.nc",
	"phytofit/atlantic_modis_poly4_2021.nc",
	"phytofit/pacific_modis_ocx_2020.nc",
	"phytofit/pacific_modis_poly4_2021.nc",
	"phytofit/pacific_seawifs_gsmgs_2009.nc",
	"phytofit/testregion_365d.nc",
	"smap_sss/SMAP_L3_SSS_20210105_8DAYS_V5.0.nc",
	"xcube_olci_northsea/olci_chl_300m_5d.nc",
}

// alike are files of a year each whose headers are, but for titles and years, those
// of the Atlantic, which is the smallest of them.
var alike = map[string]bool{
	"phytofit/pacific_modis_ocx_2020.nc":     true,
	"phytofit/pacific_modis_poly4_2021.nc":   true,
	"phytofit/pacific_seawifs_gsmgs_2009.nc": true,
}

// Climatology fills, because the format of a product does not depend on the
// method and this one takes seconds for a year of maps.
func TestProductsOfAllRealFilesAreCompliantAndKeepObservations(t *testing.T) {
	if testing.Short() {
		t.Skip("fills ten real files; leave -short out to run it")
	}
	out := t.TempDir()
	reader := testReader(t)
	var products []string
	for _, name := range realFiles {
		if alike[name] && os.Getenv("LACUNA_LONG") == "" {
			continue
		}
		input := realdata.Path(t, name)
		var stdout, stderr bytes.Buffer
		if code := run([]string{"fill", input, "-o", out, "--model", "climatology"}, nil, &stdout, &stderr); code != exitDone {
			t.Fatalf("fill %s: exit status %d\n%s", name, code, stderr.String())
		}
		product := filepath.Join(out, fill.ProductName(filepath.Base(name))+".nc")
		if got, want := stdout.String(), product+"\n"; got != want {
			t.Errorf("fill printed %q, want %q", got, want)
		}
		wantObservationsKept(t, reader, input, product)
		products = append(products, product)
	}
	compliance.Check(t, products...)
}

func testReader(t *testing.T) *ingest.Reader {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ingest.NewReader(ingest.DefaultConfig(), []string{self, "decode"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantObservationsKept compares the stored numbers of every observed cell and
// of the coordinates, bit for bit.
func wantObservationsKept(t *testing.T, reader *ingest.Reader, input, product string) {
	t.Helper()
	in, err := reader.Read(t.Context(), input, ingest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := reader.Read(t.Context(), product, ingest.Options{Variable: in.Source.Variable})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := in.Source.Var(in.Source.Variable)
	after, _ := out.Source.Var(in.Source.Variable)
	if before.Type != after.Type {
		t.Fatalf("%s: type %s became %s", in.Name, before.Type, after.Type)
	}
	cells := in.Fields[0].Grid.Len()
	size := len(before.Raw) / (cells * len(in.Fields))
	kept := 0
	for n, f := range in.Fields {
		for c := range cells {
			if !f.Observed(c) {
				continue
			}
			at := (n*cells + c) * size
			if !bytes.Equal(before.Raw[at:at+size], after.Raw[at:at+size]) {
				t.Fatalf("%s: observed cell %d of field %d changed", in.Name, c, n)
			}
			kept++
		}
	}
	if kept == 0 {
		t.Errorf("%s: no observed cell was compared", in.Name)
	}
	for _, v := range in.Source.Vars {
		if len(v.Dims) != 1 {
			continue
		}
		if w, ok := out.Source.Var(v.Name); !ok || !bytes.Equal(v.Raw, w.Raw) {
			t.Errorf("%s: the numbers of coordinate %s changed", in.Name, v.Name)
		}
	}
}

func TestHelpOfEveryCommandNamesItsExitStatus(t *testing.T) {
	for _, c := range rootCommand().Commands() {
		if c.Hidden || c.Name() == "version" || c.Name() == "simulate" || c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		var stdout bytes.Buffer
		if code := run([]string{c.Name(), "--help"}, nil, &stdout, io.Discard); code != exitDone || !bytes.Contains(stdout.Bytes(), []byte("Exit status: 0")) {
			t.Errorf("lacuna %s --help: status %d, or no word on exit statuses", c.Name(), code)
		}
	}
}

// What a newcomer does: a real file, a configuration, a product.
func TestInitProposesWhatARealFileNeeds(t *testing.T) {
	input := realdata.Path(t, "bigelow_gom_sst/gom_modis_sst_daily_201808.nc")
	dir := t.TempDir()
	config := filepath.Join(dir, "lacuna.yaml")
	var stdout, stderr bytes.Buffer
	if code := run([]string{"init", "--sample", input, "-o", config, "--state", dir, "--name", "gom", "--unmeasured"}, bytes.NewReader(nil), &stdout, &stderr); code != exitDone {
		t.Fatalf("exit status %d\n%s", code, stderr.String())
	}
	cfg, err := daemon.LoadConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	set := cfg.Datasets[0]
	if set.Product != "sst" || set.Transform != "identity" || set.Archive.Dir != filepath.Dir(input) || set.Fill.FutureDays != 10 {
		t.Errorf("proposed %+v", set)
	}
	if set.Range == nil || set.Range[0] > 0 || set.Range[1] < 35 {
		t.Errorf("the range is %v, want one for degrees Celsius", set.Range)
	}
}
