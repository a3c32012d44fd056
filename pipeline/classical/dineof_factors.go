package classical

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

const (
	// spareModes are iterated beside the k that are used: subspace iteration
	// gains by the ratio of the first unused to the last used singular value,
	// and the next mode is half found when its turn comes.
	spareModes = 3
	// rowsPerPart is how many cells are summed up before parts are added in
	// their order: sums do not depend on the number of workers.
	rowsPerPart = 256
)

// factors are a map of rank k over cells and frames, and the subspace that the
// next one is taken from. The filled matrix is X = the observed residuals plus
// amp · basisᵀ.
type factors struct {
	rec    *record
	filter timeFilter
	k      int       // rank of the map
	amp    []float64 // rows × k
	basis  []float64 // frames × k, orthonormal columns
	q      int       // size of the subspace
	space  []float64 // frames × q, orthonormal columns, leading first
}

// newFactors returns the zero map.
func newFactors(rec *record, filter timeFilter) *factors {
	return &factors{rec: rec, filter: filter}
}

// grown returns the same map, with a subspace that is ready for rank k.
func (f *factors) grown(k int) *factors {
	n := f.rec.frames
	g := *f
	g.q = min(k+spareModes, n)
	g.space = make([]float64, n*g.q)
	for t := range n {
		copy(g.space[t*g.q:], f.space[t*f.q:(t+1)*f.q])
		for c := f.q; c < g.q; c++ {
			// Cosines: as good as noise to start from, and smooth.
			g.space[t*g.q+c] = math.Cos(math.Pi * float64(c) * (float64(t) + 0.5) / float64(n))
		}
	}
	table{n, g.q, g.space}.orthonormalise()
	g.k = k
	g.amp = table{len(f.rec.cells), f.k, f.amp}.withZeroColumns(k)
	g.basis = table{n, f.k, f.basis}.withZeroColumns(k)
	return &g
}

// withRecord returns the same map over other observations of the same cells.
func (f *factors) withRecord(rec *record) *factors {
	g := *f
	g.rec = rec
	return &g
}

// converge iterates until the map converges and returns the number of steps.
func (f *factors) converge(d DINEOF) int {
	if f.k == 0 {
		return 0
	}
	cells := float64(len(f.rec.cells) * f.rec.frames)
	for i := 1; i < d.MaxIterations; i++ {
		if math.Sqrt(f.step(d)/cells) <= d.Tolerance*f.rec.spread {
			return i
		}
	}
	return d.MaxIterations
}

// step replaces the map by the projection of the filled matrix onto the
// leading k of the subspace, improves the subspace, and returns the sum of
// squares of the change of the map.
func (f *factors) step(d DINEOF) float64 {
	n, k, q := f.rec.frames, f.k, f.q
	view := f.project()
	parts := make([]*partial, (len(f.rec.cells)+rowsPerPart-1)/rowsPerPart)
	amp := make([]float64, len(f.amp))
	d.each(len(parts), func(p int) {
		parts[p] = newPartial(n, k, q)
		for row := p * rowsPerPart; row < min((p+1)*rowsPerPart, len(f.rec.cells)); row++ {
			parts[p].add(f, view, row, amp[row*k:(row+1)*k])
		}
	})
	sum := newPartial(n, k, q)
	for _, p := range parts {
		sum.plus(p)
	}
	// Xᵀ Y = Rᵀ Y + basis (ampᵀ Y)
	table{n, q, sum.image}.addProduct(table{n, k, f.basis}, table{k, q, sum.ampY})
	leading := make([]float64, n*k)
	for t := range n {
		copy(leading[t*k:(t+1)*k], f.space[t*q:t*q+k])
	}
	common := innerProduct(table{k, k, sum.cross}, table{n, k, f.basis}, table{n, k, leading})
	change := sum.newSquares + sum.oldSquares - 2*common
	f.amp, f.basis = amp, leading
	f.space = f.improved(sum)
	return max(change, 0)
}

// A projection holds the vectors onto which rows are projected: the filtered
// subspace, then its leading k columns unfiltered, and the old basis in the
// same coordinates.
type projection struct {
	width int
	onto  []float64 // frames × width
	old   []float64 // k × width: basisᵀ · onto
}

func (f *factors) project() projection {
	n, k, q := f.rec.frames, f.k, f.q
	filtered := f.filter.apply(f.space, q)
	p := projection{width: q + k, onto: make([]float64, n*(q+k)), old: make([]float64, k*(q+k))}
	for t := range n {
		copy(p.onto[t*p.width:], filtered[t*q:(t+1)*q])
		copy(p.onto[t*p.width+q:], f.space[t*q:t*q+k])
		for a := range k {
			for c := range p.width {
				p.old[a*p.width+c] += f.basis[t*k+a] * p.onto[t*p.width+c]
			}
		}
	}
	return p
}

// A partial holds the sums over some rows.
type partial struct {
	image                  []float64 // frames × q: Rᵀ Y
	ampY                   []float64 // k × q: ampᵀ Y
	gram                   []float64 // q × q: Yᵀ Y
	cross                  []float64 // k × k: new ampᵀ · old amp
	newSquares, oldSquares float64
	y, residual            []float64 // scratch for one row
}

func newPartial(n, k, q int) *partial {
	return &partial{
		image: make([]float64, n*q), ampY: make([]float64, k*q), gram: make([]float64, q*q), cross: make([]float64, k*k),
		y: make([]float64, q+k), residual: make([]float64, n),
	}
}

// add projects one row of the filled matrix and stores its new amplitudes.
func (p *partial) add(f *factors, view projection, row int, amp []float64) {
	k, q, width := f.k, f.q, view.width
	old := f.amp[row*k : (row+1)*k]
	clear(p.y)
	for a, v := range old {
		for c, o := range view.old[a*width : (a+1)*width] {
			p.y[c] += v * o
		}
	}
	from, to := f.rec.start[row], f.rec.start[row+1]
	for e := from; e < to; e++ {
		t := int(f.rec.frame[e])
		r := float64(f.rec.value[e])
		for a, b := range f.basis[t*k : (t+1)*k] {
			r -= old[a] * b
		}
		p.residual[e-from] = r
		y := p.y
		for c, o := range view.onto[t*width : (t+1)*width] {
			y[c] += r * o
		}
	}
	y := p.y[:q]
	copy(amp, p.y[q:])
	for e := from; e < to; e++ {
		t := int(f.rec.frame[e])
		r := p.residual[e-from]
		image := p.image[t*q : (t+1)*q]
		for c, v := range y {
			image[c] += r * v
		}
	}
	p.addProducts(old, amp, y)
}

// addProducts adds the small products of one row.
func (p *partial) addProducts(old, amp, y []float64) {
	k, q := len(amp), len(y)
	for a, v := range old {
		p.oldSquares += v * v
		p.newSquares += amp[a] * amp[a]
		for c, u := range y {
			p.ampY[a*q+c] += v * u
		}
		for b, u := range old {
			p.cross[a*k+b] += amp[a] * u
		}
	}
	for a, v := range y {
		for c := a; c < q; c++ {
			p.gram[a*q+c] += v * y[c]
		}
	}
}

func (p *partial) plus(o *partial) {
	for _, pair := range [][2][]float64{{p.image, o.image}, {p.ampY, o.ampY}, {p.gram, o.gram}, {p.cross, o.cross}} {
		for i, v := range pair[1] {
			pair[0][i] += v
		}
	}
	p.newSquares += o.newSquares
	p.oldSquares += o.oldSquares
}

// improved returns the next subspace: the filtered image, turned so that its
// leading directions come first.
func (f *factors) improved(sum *partial) []float64 {
	n, q := f.rec.frames, f.q
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(q, sum.gram), true) {
		panic("classical: eigenvalues of a covariance do not converge")
	}
	var turn mat.Dense
	eigen.VectorsTo(&turn)
	turned := make([]float64, n*q)
	for t := range n {
		for c := range q {
			for a := range q {
				turned[t*q+c] += sum.image[t*q+a] * turn.At(a, q-1-c) // ascending eigenvalues
			}
		}
	}
	next := f.filter.apply(turned, q)
	table{n, q, next}.orthonormalise()
	return next
}

// rmse returns the root mean square error of the map on the held-out observations.
func (f *factors) rmse(held []heldOut) float64 {
	sum := 0.0
	for _, h := range held {
		miss := f.at(h.row, int(h.frame)) - float64(h.value)
		sum += miss * miss
	}
	return math.Sqrt(sum / float64(max(len(held), 1)))
}

// at returns the map at one row and frame.
func (f *factors) at(row, frame int) float64 {
	v := 0.0
	for a := range f.k {
		v += f.amp[row*f.k+a] * f.basis[frame*f.k+a]
	}
	return v
}
