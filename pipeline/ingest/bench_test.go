package ingest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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

// BenchmarkRead measures the reading of one Black Sea granule through the child, by the
// decoder that the program carries.
func BenchmarkRead(b *testing.B) {
	path, r := blkGranule(b), decoding(b)
	b.SetBytes(790 * 1101 * 4)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(b.Context(), path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadAgainstOthers takes turns with the same reading in one process without a
// child, and with xarray where LACUNA_PYTHON names an interpreter that has it. Each
// reads some times in a row, so that our spare children are paid for in our time. The
// ratios of the medians are our time over the other: that of xarray should not exceed 1.
// Those of the fastest are what remains on a busy machine, for other work only ever adds.
func BenchmarkReadAgainstOthers(b *testing.B) {
	path, r := blkGranule(b), decoding(b)
	self, err := os.Executable()
	must(b, err)
	others := map[string]func() float64{"in-process": answering(b, self, "time-decoding", path)}
	if python := os.Getenv("LACUNA_PYTHON"); python != "" {
		others["xarray"] = answering(b, python, filepath.Join("testdata", "xarray_read.py"), path, "CHL")
	}
	ours := func() float64 {
		start := time.Now()
		_, err := r.Read(b.Context(), path, Options{})
		must(b, err)
		return time.Since(start).Seconds()
	}
	const row = 8
	took := map[string][]float64{}
	repeat := func(name string, read func() float64) {
		for i := range row + 2 {
			if seconds := read(); i >= 2 { // the first two have no spare child
				took[name] = append(took[name], seconds)
			}
		}
	}
	for b.Loop() {
		repeat("ours", ours)
		for name, read := range others {
			repeat(name, read)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(took["ours"])*1e3, "ours-ms")
	for name := range others {
		b.ReportMetric(middle(took[name])*1e3, name+"-ms")
		b.ReportMetric(middle(took["ours"])/middle(took[name]), "ours/"+name)
		b.ReportMetric(slices.Min(took["ours"])/slices.Min(took[name]), "fastest/"+name)
	}
}

func middle(seconds []float64) float64 {
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}

// decoding returns a reader whose children are the decoder.
func decoding(b *testing.B) *Reader {
	b.Helper()
	built := filepath.Join(b.TempDir(), "decoder")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", built, "./cmd/decoder").CombinedOutput(); err != nil {
		b.Fatalf("build the decoder: %v\n%s", err, out)
	}
	r := reader(b, "decode")
	DecodeBy(r.standby.argv, func() (string, error) { return built, nil })
	b.Cleanup(func() { stand.Store(nil) })
	return r
}

// answering starts a program that answers each line with the seconds that it took.
func answering(b *testing.B, argv ...string) func() float64 {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	return func() float64 {
		_, err := io.WriteString(in, "\n")
		must(b, err)
		if !lines.Scan() {
			b.Fatalf("%v has ended: %v", argv, lines.Err())
		}
		seconds, err := strconv.ParseFloat(lines.Text(), 64)
		must(b, err)
		return seconds
	}
}

// timeDecoding answers each line of standard input with the seconds of reading a file
// in this process. It is a process of its own, because HDF5 is quiet on its first thread
// only.
func timeDecoding(path string) int {
	runtime.LockOSThread()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		start := time.Now()
		if _, err := readHere(path); err != nil {
			return 1
		}
		fmt.Println(time.Since(start).Seconds())
	}
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
