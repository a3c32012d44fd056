package prior

import (
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/partition/partitiontest"
	"lacuna/pipeline/samples/samplestest"
)

// partitioners are the strategies that draw masks from a model.
func partitioners(t testing.TB) []partition.Strategy {
	t.Helper()
	m := roughModel(t, enginetest.Open(t), nil)
	free, err := NewUnconditional(m, testSampling())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultGuidance()
	cfg.SampleConfig = testSampling()
	guided, err := NewGuided(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return []partition.Strategy{free, guided}
}

func TestContextAndQueryPartitionWhatWasObserved(t *testing.T) {
	_, train, _ := samplestest.Archive(t, 30, 16)
	for _, by := range partitioners(t) {
		t.Run(by.Name(), func(t *testing.T) { partitiontest.Partitions(t, by, train) })
	}
}

func TestSameStreamGivesTheSamePartitionsAndAnotherOthers(t *testing.T) {
	for _, by := range partitioners(t) {
		partitiontest.Repeats(t, by, samplestest.Cloudy(5, 16))
	}
}
