package classical

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lacuna/pipeline/field"
)

// cloudy returns a made-up series: a drifting smooth field under clouds that
// hide 70 to 90 % of each frame in coherent pieces. Every cell is sea.
func cloudy(height, width, frames int, seed uint64) Series {
	seen, _ := cloudyOver(height, width, frames, seed)
	return seen
}

// cloudyOver is cloudy with the values under the clouds.
func cloudyOver(height, width, frames int, seed uint64) (s Series, truth [][]float32) {
	lat, lon := make([]float64, height), make([]float64, width)
	for i := range lat {
		lat[i] = 40 + float64(i)/100
	}
	for j := range lon {
		lon[j] = 27 + float64(j)/72
	}
	s = Series{Grid: field.Grid{Lat: lat, Lon: lon}}
	rng := rand.New(rand.NewPCG(seed, 1))
	slow := smoothNoise(height, width, 12, rng)
	for f := range frames {
		fast := smoothNoise(height, width, 6, rng)
		cloud := smoothNoise(height, width, 10, rng)
		level := slices.Sorted(slices.Values(cloud))
		cut := level[int(float64(len(level)-1)*(0.7+0.2*rng.Float64()))]
		values := make([]float32, height*width)
		for i := range values {
			values[i] = slow[i] + 0.3*fast[i]
		}
		truth = append(truth, slices.Clone(values))
		for i := range values {
			if cloud[i] < cut {
				values[i] = field.NaN()
			}
		}
		at := time.Date(2021, 6, 1+f, 12, 0, 0, 0, time.UTC)
		s.Frames = append(s.Frames, Frame{Time: at, Values: values})
	}
	return s, truth
}

// smoothNoise returns noise of zero mean and unit variance that three box
// filters of the given radius have smoothed along both axes. On small grids
// the radius is smaller, so that the field still varies.
func smoothNoise(height, width, radius int, rng *rand.Rand) []float32 {
	radius = min(radius, height/6, width/6)
	x := make([]float32, height*width)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	box := func(n, stride, start int) {
		line := make([]float32, n)
		for i := range line {
			line[i] = x[start+i*stride]
		}
		sum := float32(0)
		at := func(i int) float32 { return line[(i%n+n)%n] }
		for i := -radius; i <= radius; i++ {
			sum += at(i)
		}
		for i := range line {
			x[start+i*stride] = sum
			sum += at(i+radius+1) - at(i-radius)
		}
	}
	for range 3 {
		for i := range height {
			box(width, 1, i*width)
		}
		for j := range width {
			box(height, width, j)
		}
	}
	stats := field.Summarise(x)
	field.Normalisation{Mean: stats.Mean, Std: stats.Std}.Forward(x, x)
	return x
}

func BenchmarkFill(b *testing.B) {
	for _, size := range []struct{ height, width int }{{64, 64}, {256, 256}, {790, 1101}} {
		b.Run(fmt.Sprintf("%dx%d", size.height, size.width), func(b *testing.B) {
			s := cloudy(size.height, size.width, 11, 1) // ten days back and the day itself
			target := len(s.Frames) - 1
			o := DefaultOI(s.Grid)
			b.SetBytes(int64(4 * len(s.Frames) * s.Grid.Len()))
			b.ReportAllocs()
			stop, before := watchHeap(), cpuSeconds(b)
			for b.Loop() {
				if _, err := o.Fill(s, target, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuSeconds(b)-before)/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(stop())/(1<<20), "peak-MiB")
		})
	}
}

// cpuSeconds returns the processor time of this process, which a busy machine
// does not lengthen as it does the wall clock.
func cpuSeconds(b *testing.B) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// watchHeap samples the memory that the runtime has mapped and not given
// back, until the returned function is called, which gives the largest value
// in bytes: input, working memory and garbage together.
func watchHeap() (stop func() uint64) {
	runtime.GC()
	var ended atomic.Bool
	peak := make(chan uint64)
	go func() {
		most := uint64(0)
		for !ended.Load() {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse+m.StackInuse)
			time.Sleep(20 * time.Millisecond)
		}
		peak <- most
	}()
	return func() uint64 {
		ended.Store(true)
		return <-peak
	}
}
