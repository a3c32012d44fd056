package ingest

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestZarrStoresAreReadLikeTheNetCDFOfTheSameSeries has xarray write a series in
// every form, and compares what is read.
func TestZarrStoresAreReadLikeTheNetCDFOfTheSameSeries(t *testing.T) {
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" || exec.CommandContext(t.Context(), python, "-c", "import xarray, zarr").Run() != nil {
		t.Skip("LACUNA_PYTHON has no xarray and zarr; make test sets it")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/series.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("series.py: %v\n%s", err, out)
	}
	stores, err := filepath.Glob(filepath.Join(dir, "*.zarr*"))
	if err != nil || len(stores) != 12 {
		t.Fatalf("%d stores, %v", len(stores), err)
	}
	for _, path := range stores {
		name := filepath.Base(path)
		kind, _, _ := strings.Cut(name, "-")
		opt := Options{Quality: []string{"flags != 2"}, BBox: []float64{-8, 41, 3, 48}}
		want := mustRead(t, filepath.Join(dir, kind+".nc"), opt)
		if strings.Contains(name, "group") {
			opt.Group = "near/real"
		}
		got := mustRead(t, path, opt)
		if version := strings.TrimSuffix(strings.TrimSuffix(name, ".zip"), ".zarr"); got.Format != "Zarr "+version[len(version)-1:] {
			t.Errorf("%s has the format %q", name, got.Format)
		}
		if len(got.Fields) != 3 || !got.Fields[2].Time.Equal(want.Fields[2].Time) || !got.Fields[0].Grid.Same(want.Fields[0].Grid) || got.Transform != want.Transform {
			t.Fatalf("%s: %d fields, time %v, grid %v", name, len(got.Fields), got.Fields[2].Time, got.Fields[0].Grid)
		}
		for k := range got.Fields {
			for i, v := range want.Fields[k].Values {
				if g := got.Fields[k].Values[i]; g != v && (g == g || v == v) || got.Rejected[k][i] != want.Rejected[k][i] {
					t.Fatalf("%s: cell %d of map %d is %v, want %v", name, i, k, g, v)
				}
			}
		}
		first, _ := got.Source.Var("CHL")
		second, _ := want.Source.Var("CHL")
		if !bytes.Equal(first.Raw, second.Raw) || first.Type != second.Type {
			t.Errorf("%s: the numbers that a product carries over are not those of the NetCDF file", name)
		}
		if again := mustRead(t, path, opt); again.SHA256 != got.SHA256 || len(got.SHA256) != 64 {
			t.Errorf("%s has the hash %s, then %s", name, got.SHA256, again.SHA256)
		}
	}
}

func TestStoresThatCannotBeReadAreToldInASentence(t *testing.T) {
	zipped := func(files map[string]string) string {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		for name, text := range files {
			f, err := w.Create(name)
			must(t, err)
			_, err = f.Write([]byte(text))
			must(t, err)
		}
		must(t, w.Close())
		path := filepath.Join(t.TempDir(), "x.zarr.zip")
		must(t, os.WriteFile(path, buf.Bytes(), 0o600))
		return path
	}
	group := `{"zarr_format":3,"node_type":"group","attributes":{}}`
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"another ZIP file", map[string]string{"a.txt": "x"}, "a ZIP archive"},
		{"no arrays", map[string]string{"zarr.json": group, "deep/zarr.json": group}, "without arrays"},
		{"half a document", map[string]string{"zarr.json": group[:20]}, "zarr.json"},
		{"an array of a terabyte", map[string]string{"zarr.json": group, "x/zarr.json": `{"zarr_format":3,"node_type":"array","shape":[1000000,1000000],
"data_type":"float32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[100,100]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}`}, "archive of type zarr"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := reader(t, "decode").Read(t.Context(), zipped(tt.files), Options{})
			if b := wantBad(t, err); !strings.Contains(b.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	t.Run("a folder that is no store", func(t *testing.T) {
		_, err := reader(t, "decode").Read(t.Context(), t.TempDir(), Options{})
		if b := wantBad(t, err); !slices.Contains([]string{"it is not a regular file"}, b.Problem) {
			t.Errorf("%v", err)
		}
	})
}
