package infer

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
)

// A basin of 4096 x 4096 cells with ten days before it stays below 4 GiB of
// host memory. The networks are fakes: the memory of real ones depends on their
// size and on that of the windows, not on the basin.
func TestABasinOf4096SquaredFitsInto4GiB(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("takes a minute and 4 GiB: set LACUNA_LONG=1")
	}
	// A service on a small machine would set this limit: without one the
	// collector lets garbage grow to the size of the live heap.
	const limit = 3 << 30
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	debug.FreeOSMemory()
	resetPeak(t)
	const side = 4096
	s := wide(side, 11)
	m := fakeModel(fakeNetworks{predicts: func(_ int, in impute.Inputs) (impute.Prediction, error) {
		return impute.Prediction{Mean: constant(0, in.Cells()), Sigma: constant(1, in.Cells())}, nil
	}}, s)
	m.version.Scaling = nil
	a := fillWith(t, m, modelConfig(Fast), s)
	filled := 0
	for _, flags := range a.Flags {
		if flags == Interpolated {
			filled++
		}
	}
	peak := peakBytes(t)
	t.Logf("%d windows, %d cells filled, peak %.2f GiB", a.Took.Windows, filled, float64(peak)/(1<<30))
	if filled == 0 || peak > 4<<30 {
		t.Errorf("%d cells filled, peak %.2f GiB, want at most 4", filled, float64(peak)/(1<<30))
	}
}

// wide is a sea that was observed nearly completely: interpolation keeps as many
// observations as possible, and there is little to solve.
func wide(side, days int) Scene {
	grid := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 0.01*float64(i-side/2), 0.01*float64(i)
	}
	s := Scene{Sea: make(field.Mask, grid.Len()), Transform: field.Transform{Log10: true, Floor: 1e-4}}
	for i := range s.Sea {
		s.Sea[i] = true
	}
	for d := range days {
		f := field.Field{Grid: grid, Time: day0.AddDate(0, 0, -d), Values: make([]float32, grid.Len())}
		each(side, func(row int) {
			for col := range side {
				f.Values[row*side+col] = 1 + float32(math.Sin(float64(row)/50)*0.5)
				if row%256 < 16 && (col+d)%256 < 32 {
					f.Values[row*side+col] = nan
				}
			}
		})
		if d == 0 {
			s.Frames = []field.Field{f}
		} else {
			s.History = append(s.History, f)
		}
	}
	return s
}

func resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		t.Skip(err)
	}
}

// peakBytes returns the peak memory of the process since the last reset.
func peakBytes(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kB << 10
		}
	}
	t.Skip("this kernel does not report VmHWM")
	return 0
}
