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
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
)

// A Place is where and when a mask is drawn: the conditions of the prior.
type Place struct {
	Row, Col      int // first cell, on the grid of the dataset
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

// FillConditions stores the condition planes of a place in dst, padded to a
// height and a width. Padding is land.
func (m *Model) FillConditions(dst []float32, p Place, height, width int) {
	m.fill(dst, p, size{height, width})
}

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

// program returns the program of a key: one move of a walk. The caller holds
// m.mu.
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
		weights := nn.Slices(input("weights", len(m.weights)))
		in := moving{
			x:          input("x", key.batch, Classes, h, w),
			conditions: input("conditions", key.batch, m.cfg.Conditions(), h, w),
			level:      input("level", key.batch, LevelNumbers),
			before:     input("before", key.batch, 1, h, w),
			move:       input("move", moveParts),
			inside:     input("inside", 1, 1, h, w),
		}
		if key.guided {
			in.anchors = input("anchors", key.batch, 1, h, w)
		}
		next, observed := m.net.advance(weights, in)
		return []*Node{next, observed}
	})
	if err != nil {
		return nil, err
	}
	m.programs[key] = p
	return p, nil
}

// A session takes the latents of one batch of places along. They stay in the
// engine from step to step, and the inputs that do not change on a walk are
// handed to it once: on an accelerator, carrying latents to and fro costs as much as a
// small network.
type session struct {
	model      *Model
	batch      int // batch of the programs; items beyond the places are land
	inner      size
	padded     size
	x          *tensors.Tensor // nil before start
	before     *tensors.Tensor // prediction of the last move
	conditions *tensors.Tensor
	inside     *tensors.Tensor
	anchors    *tensors.Tensor // nil: not guided
}

// open returns a session for at most batch places of one size.
func (m *Model) open(places []Place, batch int) *session {
	s := &session{model: m, batch: batch, inner: size{places[0].Height, places[0].Width}}
	s.padded = s.inner.paddedTo(m.net.network.Multiple())
	planes := m.cfg.Conditions() * s.padded.cells()
	data := make([]float32, batch*planes)
	for i, p := range places {
		m.fill(data[i*planes:(i+1)*planes], p, s.padded)
	}
	s.conditions = tensors.FromFlatDataAndDimensions(data, batch, m.cfg.Conditions(), s.padded.height, s.padded.width)
	inside := make([]float32, s.inner.cells())
	fillWith(inside, 1)
	s.inside = tensors.FromFlatDataAndDimensions(s.pad(inside), 1, 1, s.padded.height, s.padded.width)
	return s
}

func (s *session) close() {
	for _, t := range []*tensors.Tensor{s.x, s.before, s.conditions, s.inside, s.anchors} {
		if t != nil {
			t.FinalizeAll()
		}
	}
}

// start hands latents, items × 2 × cells, to the engine.
func (s *session) start(x []float32) {
	s.keep(s.images(x, Classes), s.images(nil, 1))
}

// keep lets go of the latents and the prediction before and takes others.
func (s *session) keep(x, predicted *tensors.Tensor) {
	for _, t := range []*tensors.Tensor{s.x, s.before} {
		if t != nil {
			t.FinalizeAll()
		}
	}
	s.x, s.before = x, predicted
}

// pullTo hands the anchors of a guided walk, items × cells, to the engine.
func (s *session) pullTo(anchors []float32) { s.anchors = s.images(anchors, 1) }

// images returns channels of cells as the programs take them. Items beyond
// those given are zero.
func (s *session) images(x []float32, channels int) *tensors.Tensor {
	whole := make([]float32, s.batch*channels*s.inner.cells())
	copy(whole, x)
	return tensors.FromFlatDataAndDimensions(s.pad(whole), s.batch, channels, s.padded.height, s.padded.width)
}

// latents brings items of the latents back from the engine.
func (s *session) latents(items int) ([]float32, error) {
	x, err := tensors.CopyFlatData[float32](s.x)
	if err != nil {
		return nil, fmt.Errorf("read the latents of the prior: %w", err)
	}
	return s.crop(x)[:items*Classes*s.inner.cells()], nil
}

// advance implements walker.
func (s *session) advance(_ context.Context, move move) error {
	level := tensors.FromFlatDataAndDimensions(levels(move.level, s.batch), s.batch, LevelNumbers)
	defer level.FinalizeAll()
	numbers := tensors.FromFlatDataAndDimensions(
		[]float32{float32(move.look), float32(Classes * move.data), float32(move.keep), float32(move.ahead), float32(move.pull)}, moveParts)
	defer numbers.FinalizeAll()
	inputs := []*tensors.Tensor{s.x, s.conditions, level, s.before, numbers, s.inside}
	guided := move.pull != 0 && s.anchors != nil
	if guided {
		inputs = append(inputs, s.anchors)
	}
	answers, err := s.model.run(programKey{guided, s.batch, s.padded}, inputs)
	if err != nil {
		return err
	}
	s.keep(answers[0], answers[1])
	return nil
}

// predict implements Predictor: a move to nothing but the data.
func (s *session) predict(ctx context.Context, at Latents) ([]float32, error) {
	s.start(at.X)
	if err := s.advance(ctx, move{level: at.Level, look: 1, data: 1. / Classes}); err != nil {
		return nil, err
	}
	x, err := s.latents(at.Items)
	if err != nil {
		return nil, err
	}
	observed := make([]float32, 0, at.Items*at.Cells)
	for item := range at.Items {
		observed = append(observed, x[(Classes*item+1)*at.Cells:(Classes*item+2)*at.Cells]...)
	}
	return observed, nil
}

// Predict is the Predictor of the network for places of one size, one item each.
func (m *Model) Predict(ctx context.Context, places []Place, at Latents) ([]float32, error) {
	s := m.open(places, len(places))
	defer s.close()
	return s.predict(ctx, at)
}

// run executes a program with the weights and the inputs.
func (m *Model) run(key programKey, inputs []*tensors.Tensor) ([]*tensors.Tensor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vector == nil {
		m.vector = tensors.FromFlatDataAndDimensions(slices.Clone(m.weights), len(m.weights))
	}
	program, err := m.program(key)
	if err != nil {
		return nil, err
	}
	return program.Run(append([]*tensors.Tensor{m.vector}, inputs...)...)
}

// levels returns the level as the graph wants it, the same for each item.
func levels(l Level, batch int) []float32 { return slices.Repeat(l.Numbers(), batch) }

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
