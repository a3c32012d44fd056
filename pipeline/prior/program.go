package prior

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/samples"
)

// A Place is where and when a mask is drawn: what the prior is conditioned on.
type Place struct {
	Row, Col      int // of its first cell on the grid of the dataset
	Height, Width int
	Sea           []bool
	Time          time.Time
	Yesterday     []bool // nil: not known
}

// PlaceOf returns the place of a patch.
func PlaceOf(p samples.Patch) Place {
	w := p.Window
	return Place{Row: w.Row, Col: w.Col, Height: w.Height, Width: w.Width, Sea: p.Sea, Time: p.Time}
}

// fill stores the condition planes of a place, padded to a size, in dst.
// Padding is land.
func (m *Model) fill(dst []float32, p Place, padded size) {
	plane := func(k int, mask []bool) {
		to := dst[k*padded.cells():]
		for i, b := range mask {
			if b {
				to[i/p.Width*padded.width+i%p.Width] = 1
			}
		}
	}
	clear(dst)
	plane(0, p.Sea)
	next := 1
	if m.cfg.Season {
		const yearDays = 365.25
		sin, cos := math.Sincos(2 * math.Pi * float64(p.Time.UTC().YearDay()) / yearDays)
		fillWith(dst[next*padded.cells():][:padded.cells()], float32(sin))
		fillWith(dst[(next+1)*padded.cells():][:padded.cells()], float32(cos))
		next += 2
	}
	if m.cfg.Yesterday {
		if p.Yesterday != nil {
			plane(next, p.Yesterday)
			fillWith(dst[(next+1)*padded.cells():][:padded.cells()], 1)
		}
		next += 2
	}
	if m.cfg.Frequency {
		m.places.fill(dst[next*padded.cells():][:padded.cells()], p, padded)
	}
}

func fillWith(dst []float32, v float32) {
	for i := range dst {
		dst[i] = v
	}
}

type size struct{ height, width int }

func (s size) cells() int { return s.height * s.width }

// paddedTo returns the size with sides rounded up to multiples of n.
func (s size) paddedTo(n int) size {
	return size{(s.height + n - 1) / n * n, (s.width + n - 1) / n * n}
}

// programKey names a compiled program.
type programKey struct {
	guided bool
	batch  int
	size   size
}

// program returns the program of a key. The caller holds m.mu.
//
// Its inputs are the weights, x [batch, 2, height, width], the conditions and
// the level; guided, also the anchors and the share of each cell in the loss.
func (m *Model) program(key programKey) (*engine.Program, error) {
	if p, ok := m.programs[key]; ok {
		return p, nil
	}
	name := "mask prior"
	if key.guided {
		name = "guided mask prior"
	}
	h, w := key.size.height, key.size.width
	p, err := engine.Compile(m.backend, name, func(g *Graph) []*Node {
		input := func(name string, dims ...int) *Node { return Parameter(g, name, shapes.Make(dtypes.Float32, dims...)) }
		weights := flat{input("weights", len(m.weights))}
		x := input("x", key.batch, classes, h, w)
		conditions := input("conditions", key.batch, m.cfg.conditions(), h, w)
		level := input("level", key.batch, levelParts)
		if !key.guided {
			return []*Node{m.net.predict(weights, x, conditions, level)}
		}
		anchors := input("anchors", key.batch, 1, h, w)
		share := input("share", 1, 1, h, w)
		observed, gradient := m.net.guide(weights, x, conditions, level, anchors, share)
		return []*Node{observed, gradient}
	})
	if err != nil {
		return nil, err
	}
	m.programs[key] = p
	return p, nil
}

// A session asks the network about one batch of places. What does not change
// on a walk is handed to the engine once.
type session struct {
	model      *Model
	batch      int // of the programs; items beyond the places are land
	inner      size
	padded     size
	conditions *tensors.Tensor
	anchors    *tensors.Tensor
	share      *tensors.Tensor
}

// open returns a session for at most batch places of one size.
func (m *Model) open(places []Place, batch int) *session {
	s := &session{model: m, batch: batch, inner: size{places[0].Height, places[0].Width}}
	s.padded = s.inner.paddedTo(m.net.network.Multiple())
	planes := m.cfg.conditions() * s.padded.cells()
	data := make([]float32, batch*planes)
	for i, p := range places {
		m.fill(data[i*planes:(i+1)*planes], p, s.padded)
	}
	s.conditions = tensors.FromFlatDataAndDimensions(data, batch, m.cfg.conditions(), s.padded.height, s.padded.width)
	return s
}

func (s *session) close() {
	for _, t := range []*tensors.Tensor{s.conditions, s.anchors, s.share} {
		if t != nil {
			t.FinalizeAll()
		}
	}
}

// anchor hands the anchors of a walk, items × cells, to the engine.
func (s *session) anchor(anchors []float32) {
	whole := make([]float32, s.batch*s.inner.cells())
	copy(whole, anchors)
	s.anchors = tensors.FromFlatDataAndDimensions(s.pad(whole), s.batch, 1, s.padded.height, s.padded.width)
	share := make([]float32, s.inner.cells())
	fillWith(share, 1/float32(len(share)))
	s.share = tensors.FromFlatDataAndDimensions(s.pad(share), 1, 1, s.padded.height, s.padded.width)
}

// predict implements Predictor.
func (s *session) predict(_ context.Context, at Latents, anchors []float32) (observed, gradient []float32, err error) {
	x := make([]float32, s.batch*classes*s.inner.cells())
	copy(x, at.X)
	xs := tensors.FromFlatDataAndDimensions(s.pad(x), s.batch, classes, s.padded.height, s.padded.width)
	defer xs.FinalizeAll()
	level := tensors.FromFlatDataAndDimensions(levels(at.Level, s.batch), s.batch, levelParts)
	defer level.FinalizeAll()
	inputs := []*tensors.Tensor{xs, s.conditions, level}
	if anchors != nil {
		if s.anchors == nil {
			s.anchor(anchors)
		}
		inputs = append(inputs, s.anchors, s.share)
	}
	out, err := s.run(programKey{anchors != nil, s.batch, s.padded}, inputs)
	if err != nil {
		return nil, nil, err
	}
	observed = s.crop(out[0])[:at.Items*at.Cells]
	if anchors != nil {
		gradient = s.crop(out[1])[:at.Items*classes*at.Cells]
	}
	return observed, gradient, nil
}

// run executes a program and copies its answers out of the engine.
func (s *session) run(key programKey, inputs []*tensors.Tensor) ([][]float32, error) {
	m := s.model
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vector == nil {
		m.vector = tensors.FromFlatDataAndDimensions(slices.Clone(m.weights), len(m.weights))
	}
	program, err := m.program(key)
	if err != nil {
		return nil, err
	}
	answers, err := program.Run(append([]*tensors.Tensor{m.vector}, inputs...)...)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(answers))
	for i, a := range answers {
		defer a.FinalizeAll()
		if out[i], err = tensors.CopyFlatData[float32](a); err != nil {
			return nil, fmt.Errorf("read the answer of the prior: %w", err)
		}
	}
	return out, nil
}

// levels returns the level as the graph wants it, the same for each item.
func levels(l Level, batch int) []float32 {
	out := make([]float32, 0, batch*levelParts)
	for range batch {
		out = append(out, float32(l.Alpha), float32(l.Sigma), float32(l.Gain()), float32(timeOf(l)))
	}
	return out
}

// pad gives images room up to the padded size; crop takes it away.
func (s *session) pad(x []float32) []float32 {
	if s.inner == s.padded {
		return x
	}
	images := len(x) / s.inner.cells()
	out := make([]float32, images*s.padded.cells())
	for row := range images * s.inner.height {
		image, i := row/s.inner.height, row%s.inner.height
		copy(out[image*s.padded.cells()+i*s.padded.width:], x[row*s.inner.width:(row+1)*s.inner.width])
	}
	return out
}

func (s *session) crop(x []float32) []float32 {
	if s.inner == s.padded {
		return x
	}
	images := len(x) / s.padded.cells()
	out := make([]float32, 0, images*s.inner.cells())
	for row := range images * s.inner.height {
		image, i := row/s.inner.height, row%s.inner.height
		at := image*s.padded.cells() + i*s.padded.width
		out = append(out, x[at:at+s.inner.width]...)
	}
	return out
}
