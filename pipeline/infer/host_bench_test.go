package infer

import (
	"testing"

	"lacuna/pipeline/impute"
)

// The work of the host beside a device that answers at once: it bounds the
// share of time that networks can have.
func BenchmarkHostOfABasin(b *testing.B) {
	s := basin(790, 1101, false)
	m := fakeModel(fakeNetworks{
		predicts: func(_ int, in impute.Inputs) (impute.Prediction, error) {
			return impute.Prediction{Mean: constant(0, in.Cells()), Sigma: constant(1, in.Cells())}, nil
		},
		cleaned: func(_ float32, _ conditioning, x []float32) []float32 { return x },
	}, s)
	cfg := modelConfig(Standard)
	cfg.Network.Members, cfg.Network.WindowCells = 8, 1024
	for b.Loop() {
		a := fillWith(b, m, cfg, s)
		b.ReportMetric(a.Took.Analysis.Seconds(), "analysis-s")
		b.ReportMetric(1000*a.Took.Members.Seconds()/80, "ms/member-step")
	}
}
