package netcdf

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/publish/netcdf/compliance"
)

// blackSeaFull is a chlorophyll product on the CMEMS Black Sea grid: smooth
// structure with the noise of a retrieval where the sensor saw, smooth where
// gaps were filled, clouds in patches, a third of it land.
func blackSeaFull() Product {
	const height, width = 790, 1101
	p := blackSea()
	p.Source.Dims = []Dim{{Name: "time", Len: 1, Unlimited: false}, {Name: "lat", Len: height, Unlimited: false}, {Name: "lon", Len: width, Unlimited: false}}
	lat, lon := make([]float32, height), make([]float32, width)
	for i := range lat {
		lat[i] = 40 + float32(i)*0.01013
	}
	for j := range lon {
		lon[j] = 26.5 + float32(j)*0.01408
	}
	p.Source.Vars[1].Raw, p.Source.Vars[2].Raw = rawFloats(lat, 0), rawFloats(lon, 0)
	n := height * width
	observed := make([]float32, n)
	p.Value, p.Sigma = make([]float32, n), make([]float32, n)
	p.Lower, p.Upper, p.Flags = make([]float32, n), make([]float32, n), make([]byte, n)
	noise := rand.New(rand.NewPCG(1, 2))
	for k := range n {
		y, x := float64(k/width), float64(k%width)
		log := -0.5 + 0.5*math.Sin(x/90+2*math.Sin(y/130)) + 0.2*math.Cos(y/23+x/37)
		sigma := 0.1 + 0.1*math.Abs(math.Sin(x/45)*math.Cos(y/60))
		p.Value[k], p.Sigma[k] = float32(math.Pow(10, log)), float32(sigma)
		p.Lower[k], p.Upper[k] = float32(math.Pow(10, log-1.645*sigma)), float32(math.Pow(10, log+1.645*sigma))
		observed[k] = float32(math.NaN())
		switch cloud := math.Sin(x/61+y/83) + math.Sin(x/29-y/41); {
		case math.Hypot(y-395, 0.7*(x-550)) > 420:
			p.Flags[k] = Land
		case cloud > -0.5:
			p.Flags[k] = Interpolated
		default:
			observed[k] = float32(math.Pow(10, log+0.05*noise.NormFloat64()))
		}
	}
	p.Source.Vars[3].Raw = rawFloats(observed, -999)
	return p
}

// BenchmarkWriteProduct writes all variables of a product of 790 x 1101, from
// the Product to the synced file. Where LACUNA_PYTHON names an interpreter
// with xarray it reports how many times longer xarray takes to write the same
// variables with the same chunks and compression, without the sync; the
// quickest of several writes each, which other work on the machine disturbs
// least.
func BenchmarkWriteProduct(b *testing.B) {
	p := blackSeaFull()
	path := filepath.Join(b.TempDir(), "product.nc")
	bytes := len(p.Flags) + len(p.Source.Vars[3].Raw) + 4*(len(p.Sigma)+len(p.Lower)+len(p.Upper))
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	quickest := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		if err := WriteProduct(path, p); err != nil {
			b.Fatal(err)
		}
		quickest = min(quickest, time.Since(start))
	}
	if info, err := os.Stat(path); err == nil {
		b.ReportMetric(float64(info.Size())/float64(bytes), "compressed/raw")
	}
	if os.Getenv(compliance.PythonVariable) == "" {
		return
	}
	out, err := exec.Command(compliance.Python(b), "testdata/xarray_write.py", path, filepath.Join(b.TempDir(), "x.nc"), "9").Output()
	if err != nil {
		b.Fatalf("time xarray: %v\n%s", err, out)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(seconds/quickest.Seconds(), "xarray/ours")
}

// BenchmarkFile measures the description of a product, without the writing.
func BenchmarkFile(b *testing.B) {
	p := blackSeaFull()
	for b.Loop() {
		if _, err := p.File(); err != nil {
			b.Fatal(err)
		}
	}
}
