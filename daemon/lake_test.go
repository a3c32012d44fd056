package daemon

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"lacuna/daemon/work"
	"lacuna/pipeline/field"
	"lacuna/pipeline/simulate"
)

// inland moves a granule to the steppe between Irtysh and Ob, where the built-in
// mask knows no sea: the sea of the simulation becomes a lake.
func inland(t *testing.T, g simulate.Granule) simulate.Granule {
	t.Helper()
	vars := slices.Clone(g.File.Vars)
	for i, v := range vars {
		by, moves := map[string]float32{"lat": 9, "lon": 45}[v.Name]
		if !moves {
			continue
		}
		if v.Type != "float" {
			t.Fatalf("%s is of type %s", v.Name, v.Type)
		}
		raw := slices.Clone(v.Raw)
		for at := 0; at < len(raw); at += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(raw[at:]))
			binary.LittleEndian.PutUint32(raw[at:], math.Float32bits(x+by))
		}
		vars[i].Raw = raw
	}
	g.File.Vars = vars
	return g
}

// A lake is filled by the mask that its days show, and that mask does not shrink
// from product to product, though the service is started again between them.
func TestALakeIsFilledByAMaskThatOnlyGrows(t *testing.T) {
	skipInShort(t)
	b := newBench(t)
	b.cfg.Datasets[0].Fill.PastDays = 2              // so that the window alone does not know the lake
	b.cfg.Datasets[0].EmptyDays = work.SkipEmptyDays // one product for each granule
	b.cfg.Datasets[0].Reanalysis.Enabled = false
	b.cfg.Datasets[0].Fill.Method, b.cfg.Datasets[0].DailySkill = "oi", false
	w := world(t, 24, 32)
	days := firstVersions(w, 12)
	union := make(field.Mask, len(w.Sea()))
	for from := 0; from < len(days); from += 4 {
		for _, d := range days[from : from+4] {
			put(t, b.archive(), inland(t, w.Granule(d)))
		}
		if s := b.once(t); s.Products != 4 || s.SetAside != 0 {
			t.Fatalf("Once() = %+v\n%s", s, b.log)
		}
	}
	for i, file := range b.products(t) {
		if i%4 == 0 { // the days that came together are known together
			for _, d := range days[i : i+4] {
				for c, seen := range w.Granule(d).Seen.ObservedMask() {
					union[c] = union[c] || seen
				}
			}
		}
		out, flags := read(t, file, "CHL").Fields[0], read(t, file, "flags").Fields[0].Values
		for c, lake := range union {
			if out.Observed(c) != lake || !lake && flags[c] != 1 {
				t.Fatalf("product %d: cell %d, which the days that were there show: %v, has the value %g and the flags %v", i, c, lake, out.Values[c], flags[c])
			}
		}
	}
	if n := union.Count(); n < w.Sea().Count()/2 {
		t.Errorf("%d of %d cells of the lake were seen: the test says little", n, w.Sea().Count())
	}
	for _, want := range []string{"level=WARN msg=\"sea mask\"", "calls 100 % of the observed cells land", "covered_percent=100"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, b.log)
		}
	}
	if strings.Contains(b.log.String(), "observed_percent=100 ") {
		t.Errorf("a day with gaps is said to be observed in full:\n%s", b.log)
	}
}
