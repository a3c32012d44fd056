package fill

import (
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/seamask"

	"github.com/google/go-cmp/cmp"
)

func TestABuiltinMaskIsThatOfItsGridHoweverOftenItIsAskedFor(t *testing.T) {
	axis := func(first, step float64, n int) (all []float64) {
		for i := range n {
			all = append(all, first+step*float64(i))
		}
		return all
	}
	grids := []field.Grid{
		{Lat: axis(80, -0.5, 20), Lon: axis(10, 0.5, 30)},
		{Lat: axis(80, -0.5, 20), Lon: axis(40, 0.5, 30)},
		{Lat: axis(70.5, 0.5, 20), Lon: axis(10, 0.5, 30)},
		{Lat: axis(80, -0.5, 30), Lon: axis(10, 0.5, 20)},
	}
	var kept builtins
	for range 3 {
		for i, g := range grids {
			want, err := seamask.Builtin(g)
			if err != nil {
				t.Fatal(err)
			}
			got, err := kept.of(g)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("grid %d has another mask (-want +got):\n%s", i, diff)
			}
			for c := range got { // what a caller does to it stays with the caller
				got[c] = !got[c]
			}
		}
	}
	if len(kept.kept) != len(grids) || kept.cells != 4*600 {
		t.Errorf("%d grids of %d cells are kept, want %d of 2400", len(kept.kept), kept.cells, len(grids))
	}
}

func TestBuiltinMasksAreForgottenBeforeTheyTakeMuchMemory(t *testing.T) {
	old := builtin{mask: make(field.Mask, mostBuiltinCells-100)}
	kept := builtins{kept: []builtin{old}, cells: len(old.mask)}
	g := field.Grid{Lat: make([]float64, 20), Lon: make([]float64, 30)}
	for i := range g.Lat {
		g.Lat[i] = 80 - float64(i)/2
	}
	for j := range g.Lon {
		g.Lon[j] = 10 + float64(j)/2
	}
	if _, err := kept.of(g); err != nil {
		t.Fatal(err)
	}
	if len(kept.kept) != 1 || kept.cells != g.Len() || len(kept.kept[0].mask) != g.Len() {
		t.Errorf("%d masks of %d cells are kept, want the new one", len(kept.kept), kept.cells)
	}
}
