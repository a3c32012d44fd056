package classical

import (
	"fmt"
	"testing"
)

func BenchmarkDINEOF(b *testing.B) {
	for _, size := range []struct{ side, frames int }{{64, 60}, {200, 365}} {
		b.Run(fmt.Sprintf("%dx%dx%d", size.frames, size.side, size.side), func(b *testing.B) {
			s, _ := lowRank(size.side, size.frames, 0.3, 1)
			d := DefaultDINEOF()
			b.ReportAllocs()
			before, modes := cpuSeconds(b), modeSet{}
			for b.Loop() {
				var err error
				if _, modes, err = d.fillAll(s, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuSeconds(b)-before)/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(modes.Count), "modes")
			b.ReportMetric(float64(modes.Iterations), "iterations")
		})
	}
}
