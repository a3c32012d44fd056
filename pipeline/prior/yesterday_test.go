package prior

import (
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/samplestest"
)

// calendar knows the day before each of some patches.
type calendar struct {
	patches []samples.Patch
	before  [][]bool
}

func (c calendar) Days() int                       { return len(c.patches) }
func (c calendar) Cut(r samples.Ref) samples.Patch { return c.patches[r.Day] }
func (c calendar) Yesterday(r samples.Ref) []bool  { return c.before[r.Day] }

func TestYesterdayReachesTheNetworkWhereItIsKnown(t *testing.T) {
	const side = 16
	patches := samplestest.Cloudy(4, side)
	before := make([][]bool, len(patches))
	for i := range patches {
		before[i] = make([]bool, side*side)
		for c := range before[i] {
			before[i][c] = i != 2 && c%side > side/2 // nothing is known of the day before the third
		}
	}
	told := placesOf(patches)
	for i := range told {
		if i != 2 {
			told[i].Yesterday = before[i]
		}
	}
	m := roughModel(t, enginetest.Open(t), func(c *Config) { c.Yesterday = true })
	m.Recall(calendar{patches, before})
	stream := noise.New(1, "yesterday")
	by, err := NewUnconditional(m, testSampling())
	if err != nil {
		t.Fatal(err)
	}
	split := func() []partition.Parts {
		got, err := by.Partition(t.Context(), patches, stream)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := split()
	for i, p := range patches {
		want, err := m.Draw(t.Context(), told[i:i+1], testSampling(), stream.Sub(uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if part, ok := partition.Intersect(p.Observed(), want[0]); ok && !equalMasks(part.Context, got[i].Context) {
			t.Errorf("patch %d is split as if another day had been before it", i)
		}
	}
	m.Recall(nil)
	differ := 0
	for i, part := range split() {
		if !equalMasks(part.Context, got[i].Context) {
			differ++
			if i == 2 {
				t.Error("the patch without a day before it changed too")
			}
		}
	}
	if differ == 0 {
		t.Error("it makes no difference what was observed the day before")
	}
}

func TestYesterdayOfOtherDaysIsNotTaken(t *testing.T) {
	patches := samplestest.Cloudy(2, 16)
	m := roughModel(t, enginetest.Open(t), func(c *Config) { c.Yesterday = true })
	m.Recall(calendar{patches[:1], [][]bool{patches[1].Observed()}})
	if m.Place(patches[0]).Yesterday == nil {
		t.Error("the day before is not known of a patch of the days")
	}
	later, elsewhere := patches[0], patches[0]
	later.Time = later.Time.AddDate(0, 0, 7)
	elsewhere.Place = 1
	for _, p := range []samples.Patch{patches[1], later, elsewhere} {
		if m.Place(p).Yesterday != nil {
			t.Errorf("a patch of %v, which is none of the days, has a day before it", p.Time)
		}
	}
}
