package ingest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lacuna/internal/cdl"
)

// A window of forty days keeps forty neighbours: what only their own products carry
// over must not be among it, and what others look at must.
func TestANeighbourHasWhatOtherDaysSeeOfIt(t *testing.T) {
	g := mustRead(t, fixture(t, "nc4", "plankton"), Options{})
	n := g.Neighbour()
	if !g.Whole() || n.Whole() || n.Neighbour().Whole() {
		t.Errorf("a granule is whole: %v, its neighbour's view %v", g.Whole(), n.Whole())
	}
	if d := cmp.Diff(g.Fields, n.Fields, cmpopts.EquateNaNs()); d != "" || n.Rejected != nil {
		t.Errorf("fields differ (-whole +neighbour), or refusals were kept:\n%s", d)
	}
	cells, axes := len(g.Fields[0].Values), 0
	for i, v := range n.Source.Vars {
		whole := g.Source.Vars[i]
		if len(whole.Raw) == 0 {
			t.Errorf("%s of the whole granule has lost its numbers", whole.Name)
		}
		switch {
		case len(v.Raw) >= cells*cdl.SizeOf(v.Type):
			t.Errorf("a neighbour keeps the %d bytes of %s", len(v.Raw), v.Name)
		case len(v.Raw) > 0:
			axes++
		}
		if d := cmp.Diff(whole.Attrs, v.Attrs); d != "" {
			t.Errorf("attributes of %s differ:\n%s", v.Name, d)
		}
	}
	if axes < 3 { // time, latitude and longitude
		t.Errorf("a neighbour keeps the numbers of %d variables, fewer than it has axes", axes)
	}
}
