package classical

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// TestSearchAgreesWithBruteForce compares the neighbours with a search without
// trees, on a region and on the globe.
func TestSearchAgreesWithBruteForce(t *testing.T) {
	for name, s := range map[string]Series{
		"region": cloudy(33, 47, 4, 13),
		"globe":  globe(0),
	} {
		for _, perSector := range []int{3, 1000} {
			o := DefaultOI(s.Grid)
			o.Neighbours, o.PerSector = 30, perSector
			target := len(s.Frames) - 1
			a := &analysis{oi: o, series: s, target: target, sphere: newSphere(s.Grid)}
			a.search(o.buildTrees(s, a.sphere))
			h := newNeighbourhood(o, len(a.frames))
			for c := int32(0); int(c) < s.Grid.Len(); c += 37 {
				got := slices.Clone(h.around(a.sphere.of(c), a.frames))
				if want := bruteForce(a, h, a.sphere.of(c)); !slices.Equal(got, want) {
					t.Fatalf("%s, %d per sector, cell %d: found\n%v, want\n%v", name, perSector, c, got, want)
				}
			}
		}
	}
}

// bruteForce returns the neighbours of q by sorting all observations.
func bruteForce(a *analysis, h *neighbourhood, q point) []neighbour {
	h.centre = q
	h.turn()
	order := func(x, y neighbour) int {
		return cmp.Or(cmp.Compare(x.distance2, y.distance2), cmp.Compare(x.frame, y.frame), cmp.Compare(x.rank, y.rank))
	}
	var all []neighbour
	for k, f := range a.frames {
		lag := f.days / a.oi.Days
		var bySector [sectors][]neighbour
		for c, v := range f.values {
			if v != v || !a.series.sea(c) { // NaN
				continue
			}
			p := a.sphere.of(int32(c))
			d := [3]float32{p.x - q.x, p.y - q.y, p.z - q.z}
			sector := 0
			for i, axis := range h.axes {
				if d[0]*axis[0]+d[1]*axis[1]+d[2]*axis[2] < 0 {
					sector += i + 1
				}
			}
			distance2 := (d[0]*d[0]+d[1]*d[1]+d[2]*d[2])*h.perKM2 + float32(lag*lag)
			n := neighbour{distance2: distance2, frame: int32(k), cell: p.cell, rank: p.rank}
			bySector[sector] = append(bySector[sector], n)
		}
		for _, list := range bySector {
			slices.SortFunc(list, order)
			all = append(all, list[:min(len(list), h.sector[0].most)]...)
		}
	}
	slices.SortFunc(all, order)
	return all[:min(len(all), a.oi.Neighbours)]
}

func TestNeighboursComeFromAllSidesWhereThereAreAny(t *testing.T) {
	// A dense field east of the cell, single observations west and south of it:
	// the dense side must not crowd them out.
	s := cloudy(41, 41, 1, 14)
	values := gappy(s.Grid.Len())
	for c := range values {
		if c%41 > 22 && c/41 >= 15 && c/41 <= 25 {
			values[c] = 1
		}
	}
	lone := []int{20*41 + 2, 3*41 + 13}
	for _, c := range lone {
		values[c] = 2
	}
	s.Frames[0].Values = values
	o := DefaultOI(s.Grid)
	o.Neighbours = 24
	a := &analysis{oi: o, series: s, sphere: newSphere(s.Grid)}
	a.search(o.buildTrees(s, a.sphere))
	found := newNeighbourhood(o, 1).around(a.sphere.of(20*41+20), a.frames)
	for _, c := range lone {
		if !slices.ContainsFunc(found, func(n neighbour) bool { return n.cell == int32(c) }) {
			t.Errorf("the only observation on its side, cell %d, is not among the neighbours", c)
		}
	}
	if !slices.IsSortedFunc(found, func(x, y neighbour) int { return cmp.Compare(x.distance2, y.distance2) }) {
		t.Error("neighbours are not in order of distance")
	}
}

func TestCholeskySolvesItsSystem(t *testing.T) {
	s := cloudy(20, 20, 2, 15)
	o := DefaultOI(s.Grid)
	a := &analysis{oi: o, series: s, target: 1, bg: newBackground(s, o.SmoothKM), sphere: newSphere(s.Grid)}
	a.search(o.buildTrees(s, a.sphere))
	v := newSolver(a)
	v.solve(a.sphere.of(210))
	n := len(v.found)
	// The formula of OI, in other words than the solver's.
	covariance := func(i, j int) float64 {
		p, q, days := v.places[i], v.places[j], a.frames[v.found[i].frame].days-a.frames[v.found[j].frame].days
		h := math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2])
		return (1-o.Nugget)*math.Exp(-h-math.Abs(days)/o.Days) + levelVariance
	}
	want := make([]float64, n)
	b := make([]float64, n)
	for i := range n {
		want[i] = math.Sin(float64(i))
	}
	for i := range n {
		for j := range n {
			c := 1 + levelVariance + jitter
			if i != j {
				c = covariance(i, j)
			}
			b[i] += c * want[j]
		}
	}
	forward(v.factor, n, b)
	backward(v.factor, b)
	for i := range n {
		if math.Abs(b[i]-want[i]) > 1e-9 {
			t.Fatalf("unknown %d is %v, want %v", i, b[i], want[i])
		}
	}
}
