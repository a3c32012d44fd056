package prior

import (
	"testing"

	"lacuna/pipeline/noise"
)

// What a batch of training costs one goroutine, and a smooth anchor field.
func BenchmarkBatch(b *testing.B) {
	_, data, _ := archive(b, 30, 64)
	cfg := DefaultTraining()
	cfg.Batch = 64
	refs, err := trainingRefs(data, cfg)
	if err != nil {
		b.Fatal(err)
	}
	m := roughModel(b, openEngine(b), nil)
	s := newSource(data, refs, cfg, m)
	b.SetBytes(int64(cfg.Batch * 4 * cfg.Side * cfg.Side))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		s.make(n)
	}
}

func BenchmarkAnchor(b *testing.B) {
	p := cloudy(1, 64)[0]
	dst := make([]float32, len(p.Sea))
	cfg := DefaultGuidance()
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		cfg.anchors(dst, p, noise.New(n, "anchor"))
	}
}
