package jobs

import (
	"slices"
	"testing"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
)

// A worker reads the granules as the archive has them, and must leave out what the
// daemon has left out, of the neighbours too.
func TestAWorkerLeavesOutWhatTheDaemonHasTakenOut(t *testing.T) {
	raw := func() ingest.Granule {
		return ingest.Granule{Fields: []field.Field{{Values: []float32{1, 2, 3}}, {Values: []float32{4, 5, 6}}}}
	}
	folder := Folder{Storage: Dir(t.TempDir())}
	sent := fill.Job{Screened: fill.Screened{
		Tests: quality.DefaultTests(), Counts: quality.Counts{"spike": 2},
		Taken: field.Mask{false, true, false, false, false, true}, History: []field.Mask{nil, {true, false, false, false, false, false}},
		SeaIce: "of the granule itself", Ice: []field.Mask{{true, false, false}, {false, false, true}}, FillIce: true, IcePercent: []byte{40, 0, 255, 0, 0, 90},
	}}
	packed, err := folder.packScreened(sent)
	if err != nil {
		t.Fatal(err)
	}
	if needs := (Message{Screened: packed}).Objects(); len(needs) != 5 {
		t.Errorf("the job needs %v of the folder", needs)
	}
	got := fill.Job{Granule: raw(), History: []ingest.Granule{raw(), raw()}}
	shared := got.History[1].Fields[0].Values
	if err := folder.unpackScreened(packed, &got); err != nil {
		t.Fatal(err)
	}
	seen := func(g ingest.Granule) (out field.Mask) {
		for _, f := range g.Fields {
			out = append(out, f.ObservedMask()...)
		}
		return out
	}
	if want := (field.Mask{true, false, true, true, true, false}); !slices.Equal(seen(got.Granule), want) || !got.Granule.Rejected[1][2] {
		t.Errorf("of the granule %v is left, want %v", seen(got.Granule), want)
	}
	if seen(got.History[0]).Count() != 6 || seen(got.History[1]).Count() != 5 || shared[0] != 1 {
		t.Error("of the neighbours more or less is left, or a cached granule was changed")
	}
	s := got.Screened
	if s.SeaIce != sent.Screened.SeaIce || !s.FillIce || !slices.Equal(s.Ice[1], sent.Screened.Ice[1]) || !slices.Equal(s.IcePercent, sent.Screened.IcePercent) || s.Tests != sent.Screened.Tests || s.Counts["spike"] != 2 {
		t.Errorf("the product would tell %+v", s)
	}
	if packed, err := folder.packScreened(fill.Job{}); packed != nil || err != nil {
		t.Errorf("a job that was not screened has %+v, %v", packed, err)
	}
}
