package partition_test

import (
	"testing"

	"lacuna/pipeline/partition"
	"lacuna/pipeline/partition/partitiontest"
	"lacuna/pipeline/samples/samplestest"
)

func TestContextAndQueryPartitionWhatWasObserved(t *testing.T) {
	_, train, _ := samplestest.Archive(t, 30, 16)
	for _, by := range []partition.Strategy{partition.Saliency(0.5), partition.Empirical(train), partition.Coherent()} {
		t.Run(by.Name(), func(t *testing.T) { partitiontest.Partitions(t, by, train) })
	}
}

func TestSameStreamGivesTheSamePartitionsAndAnotherOthers(t *testing.T) {
	_, train, _ := samplestest.Archive(t, 30, 16)
	for _, by := range []partition.Strategy{
		partition.Saliency(0.5), partition.Empirical(train), partition.Coherent(), partition.Pixel(0.3, 0.3), partition.Block(8, 0.5, 0.5),
	} {
		partitiontest.Repeats(t, by, samplestest.Cloudy(5, 16))
	}
}
