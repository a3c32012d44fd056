package ingest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/ingest/ncfile"

	"github.com/fhs/go-netcdf/netcdf"
)

const blkName = "20240326_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D.nc"

// blkGranule writes a file of the layout and size of a Black Sea plankton
// granule of 1 km: six variables, deflated, two thirds cloud.
func blkGranule(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), blkName)
	ds, err := netcdf.CreateFile(path, netcdf.CLOBBER|netcdf.NETCDF4)
	must(t, err)
	const height, width = 790, 1101
	dims := make([]netcdf.Dim, 3)
	coords := make([]netcdf.Var, 3)
	for i, d := range []struct {
		name, standard, units string
		n                     uint64
		typ                   netcdf.Type
	}{
		{"time", "time", "seconds since 1981-01-01 00:00:00", 1, netcdf.INT},
		{"lat", "latitude", "degrees_north", height, netcdf.FLOAT},
		{"lon", "longitude", "degrees_east", width, netcdf.FLOAT},
	} {
		dims[i], err = ds.AddDim(d.name, d.n)
		must(t, err)
		coords[i], err = ds.AddVar(d.name, d.typ, dims[i:i+1])
		must(t, err)
		must(t, coords[i].Attr("standard_name").WriteBytes([]byte(d.standard)))
		must(t, coords[i].Attr("units").WriteBytes([]byte(d.units)))
	}
	must(t, coords[0].WriteInt32s([]int32{1364256000})) // 2024-03-26
	must(t, coords[1].WriteFloat32s(ramp(40, 48, height)))
	must(t, coords[2].WriteFloat32s(ramp(26.5, 42, width)))
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"CHL", "MICRO", "NANO", "PICO", "QI_CHL", "SENSORMASK"} {
		v, err := ds.AddVar(name, netcdf.FLOAT, dims)
		must(t, err)
		must(t, v.SetCompression(true, true, 6))
		must(t, v.Attr("_FillValue").WriteFloat32s([]float32{-999}))
		must(t, v.Attr("valid_min").WriteFloat32s([]float32{0.01}))
		must(t, v.Attr("valid_max").WriteFloat32s([]float32{100}))
		must(t, v.Attr("units").WriteBytes([]byte("milligram m^-3")))
		if name == "CHL" {
			must(t, v.Attr("standard_name").WriteBytes([]byte("mass_concentration_of_chlorophyll_a_in_sea_water")))
		}
		must(t, v.WriteFloat32s(cloudy(rng, height, width)))
	}
	must(t, ds.Close())
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ramp(from, to float64, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(from + (to-from)*float64(i)/float64(n-1))
	}
	return out
}

// cloudy returns a smooth field with noise and -999 under broad clouds.
func cloudy(rng *rand.Rand, height, width int) []float32 {
	out := make([]float32, height*width)
	for i := range height {
		for j := range width {
			y, x := float64(i)/100, float64(j)/100
			out[i*width+j] = -999
			if math.Sin(1.3*y)+math.Cos(0.7*x+y) > 0.4 {
				out[i*width+j] = float32(math.Pow(10, 0.3*math.Sin(x)*math.Cos(2*y)+0.05*rng.NormFloat64()))
			}
		}
	}
	return out
}

// BenchmarkRead measures the reading of one Black Sea granule: through the
// child, without one, and, where LACUNA_PYTHON names an interpreter that has
// xarray, by xarray. The ratios are our time through the child over the other:
// that of xarray should not exceed 1.
func BenchmarkRead(b *testing.B) {
	path := blkGranule(b)
	const rawBytes = 790 * 1101 * 4
	var child float64
	b.Run("child", func(b *testing.B) {
		r := reader(b, "decode")
		b.SetBytes(rawBytes)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Read(b.Context(), path, Options{}); err != nil {
				b.Fatal(err)
			}
		}
		child = b.Elapsed().Seconds() / float64(b.N)
	})
	measure := func(b *testing.B, name string, args ...string) {
		out, err := exec.Command(args[0], args[1:]...).Output()
		must(b, err)
		seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		must(b, err)
		for b.Loop() { // nothing to repeat: the program measures itself
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(seconds*1e3, name+"-ms")
		b.ReportMetric(child/seconds, name+"-ratio")
	}
	b.Run("in-process", func(b *testing.B) {
		self, err := os.Executable()
		must(b, err)
		measure(b, "in-process", self, "time-decoding", path)
	})
	b.Run("xarray", func(b *testing.B) {
		python := os.Getenv("LACUNA_PYTHON")
		if python == "" {
			b.Skip("set LACUNA_PYTHON to an interpreter that has xarray and netCDF4 to compare with it")
		}
		measure(b, "xarray", python, filepath.Join("testdata", "xarray_read.py"), path, "CHL")
	})
}

// timeDecoding prints the median seconds of reading a file in this process.
// It is a process of its own, because HDF5 is quiet on its first thread only.
func timeDecoding(path string) int {
	runtime.LockOSThread()
	var seconds []float64
	for range 26 {
		start := time.Now()
		if _, err := readHere(path); err != nil {
			return 1
		}
		seconds = append(seconds, time.Since(start).Seconds())
	}
	seconds = seconds[1:] // the first includes the initialisation
	slices.Sort(seconds)
	fmt.Println(seconds[len(seconds)/2])
	return 0
}

// readHere reads a granule without a child, as the child and its parent would.
func readHere(path string) (Granule, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return Granule{}, err
	}
	defer f.Close()
	m, err := ncfile.Map(int(f.Fd()), size)
	if err != nil {
		return Granule{}, err
	}
	defer func() { _ = m.Close() }()
	req := request{Want: wantGranule, Name: filepath.Base(path), FileBytes: size, MemoryBytes: 1 << 30}
	var pipe bytes.Buffer
	if err := send(&pipe, m, req); err != nil {
		return Granule{}, err
	}
	x, err := receive(&pipe, req)
	if err != nil {
		return Granule{}, err
	}
	return x.granule(req.Name, req.Options)
}
