package infer

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
)

// residualNetwork takes noise off the residuals of windows. It is the network
// of impute.Members, asked one step at a time, so that between two steps the
// windows of a basin can be made to agree; a test holds both to the same
// answers.
type residualNetwork struct {
	device  Device
	network nn.Network
	weights []float32
	design  impute.Design // of the imputer, whose planes it sees

	mu       sync.Mutex // held while anything compiles or runs
	programs map[residualShape]*engine.Program
}

type residualShape struct{ batch, planes, height, width int }

// Planes of a residual network beyond those of the imputer: its mean, its
// sigma, where the residual is to be found, and the residual.
const (
	meanOffset = iota
	sigmaOffset
	knownOffset
	stillOffset // the planes that do not change end here
)

func newResidualNetwork(data []byte, imputer *impute.Model, d Device) (*residualNetwork, error) {
	m, err := impute.LoadMembers(data, imputer)
	if err != nil {
		return nil, err
	}
	m.Close() // it was loaded to be checked against the imputer
	f, err := netfile.Decode(data)
	if err != nil {
		return nil, err
	}
	network, err := nn.New(f.Config)
	if err != nil {
		return nil, err
	}
	n := &residualNetwork{
		device: d, network: network, weights: f.Weights, design: imputer.Design(), programs: map[residualShape]*engine.Program{},
	}
	if want := planesOf(n.design) + stillOffset + 1; f.Config.In != want {
		return nil, fmt.Errorf("read members: the network sees %d planes, of which %d are known here", f.Config.In, want)
	}
	return n, nil
}

// Close frees what the network holds on its device.
func (n *residualNetwork) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.programs {
		p.Close()
	}
	clear(n.programs)
}

// scene draws the planes that stay the same while members of a window are
// drawn.
func (n *residualNetwork) scene(in impute.Inputs, p impute.Prediction) scenery {
	up := func(size int) int {
		return (size + n.network.Multiple() - 1) / n.network.Multiple() * n.network.Multiple()
	}
	s := scenery{window: in, height: up(in.Height), width: up(in.Width)}
	cells, planes := s.height*s.width, planesOf(n.design)
	data := make([]float32, (planes+stillOffset)*cells)
	c := canvas{design: n.design, data: data, cells: cells, width: s.width, in: &in}
	c.draw()
	for i, sea := range in.Sea {
		if !sea || in.Visible[i] {
			continue
		}
		at := i/in.Width*s.width + i%in.Width
		data[(planes+meanOffset)*cells+at] = p.Mean[i] - c.base(i)
		data[(planes+sigmaOffset)*cells+at] = p.Sigma[i]
		data[(planes+knownOffset)*cells+at] = 1
	}
	s.planes = tensors.FromFlatDataAndDimensions(data, 1, planes+stillOffset, s.height, s.width)
	return s
}

// clean returns the expected clean residuals of members of one window, zero
// where there is no residual to be found. There may be fewer than a batch.
func (n *residualNetwork) clean(ctx context.Context, batch int, s scenery, t float32, x [][]float32) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cells := s.height * s.width
	data, times := make([]float32, batch*cells), make([]float32, batch)
	rows, cols := s.window.Height, s.window.Width
	for i := range x {
		for row := range rows {
			copy(data[i*cells+row*s.width:], x[i][row*cols:(row+1)*cols])
		}
	}
	for i := range times {
		times[i] = t
	}
	noised := tensors.FromFlatDataAndDimensions(data, batch, 1, s.height, s.width)
	at := tensors.FromFlatDataAndDimensions(times, batch)
	defer noised.FinalizeAll()
	defer at.FinalizeAll()
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.program(residualShape{batch, s.planes.Shape().Dimensions[1], s.height, s.width})
	if err != nil {
		return nil, err
	}
	said, err := p.Run(s.planes, noised, at)
	if err != nil {
		return nil, err
	}
	defer said[0].FinalizeAll()
	answer, err := tensors.CopyFlatData[float32](said[0])
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(x))
	for i := range out {
		out[i] = make([]float32, rows*cols)
		for row := range rows {
			copy(out[i][row*cols:(row+1)*cols], answer[i*cells+row*s.width:])
		}
	}
	return out, nil
}

// program returns the compiled denoiser of a shape. The scenery goes to the
// device once for all members of a batch.
func (n *residualNetwork) program(shape residualShape) (*engine.Program, error) {
	if p, ok := n.programs[shape]; ok {
		return p, nil
	}
	for _, p := range n.programs { // one at a time: they are what fills the memory
		p.Close()
	}
	clear(n.programs)
	p, err := engine.Compile(n.device.Backend, "residual", func(g *graph.Graph) []*graph.Node {
		single := func(name string, dims ...int) *graph.Node {
			return graph.Parameter(g, name, shapes.Make(dtypes.Float32, dims...))
		}
		still := single("scenery", 1, shape.planes, shape.height, shape.width)
		noised := single("noised", shape.batch, 1, shape.height, shape.width)
		t := single("time", shape.batch)
		still = graph.BroadcastToDims(still, shape.batch, shape.planes, shape.height, shape.width)
		last := shape.planes - 1
		known := graph.Slice(still, graph.AxisRange(), graph.AxisRange(last, last+1))
		seen := graph.Slice(still, graph.AxisRange(), graph.AxisRange(0, last))
		w := nn.Constants(g, n.weights)
		if n.device.GPU {
			w = nn.WithDType(w, dtypes.BFloat16)
		}
		x := graph.Concatenate([]*graph.Node{seen, graph.Mul(noised, known), known}, 1)
		return []*graph.Node{graph.Mul(n.network.Apply(w, x, t), known)}
	})
	if err != nil {
		return nil, err
	}
	n.programs[shape] = p
	return p, nil
}

// A canvas draws what an imputer sees of a window, in the planes of its
// design.
type canvas struct {
	design       impute.Design
	data         []float32
	cells, width int // of a plane
	in           *impute.Inputs
}

// planesOf returns how many planes an imputer sees: the visible values, where
// they are, the sea, and two for every extra.
func planesOf(d impute.Design) int {
	n := 3
	for _, has := range []bool{d.Extras.Last, d.Extras.Next, d.Extras.Background, d.Extras.Analysis, d.Extras.Season} {
		if has {
			n += 2
		}
	}
	return n
}

func (c canvas) draw() {
	in, x := c.in, c.design.Extras
	c.pair(0, func(i int) (float32, float32, bool) { return in.Values[i] - c.base(i), 1, in.Visible[i] })
	c.pair(2, func(i int) (float32, float32, bool) { return 1, 0, in.Sea[i] })
	at := 3
	estimate := func(value, sigma []float32) {
		if value != nil {
			c.pair(at, func(i int) (float32, float32, bool) {
				return value[i], float32(math.Exp(-float64(sigma[i]))), in.Sea[i] && finite(value[i])
			})
		}
		at += 2
	}
	composite := func(value, fresh []float32) {
		if value != nil {
			c.pair(at, func(i int) (float32, float32, bool) { return value[i] - c.base(i), fresh[i], fresh[i] > 0 })
		}
		at += 2
	}
	if x.Last {
		composite(in.Last.Value, in.Last.Freshness)
	}
	if x.Next {
		composite(in.Next.Value, in.Next.Freshness)
	}
	if x.Background {
		estimate(in.Background, in.BackgroundSigma)
	}
	if x.Analysis {
		estimate(in.Analysis, in.AnalysisSigma)
	}
	if x.Season && in.DayOfYear > 0 {
		sin, cos := math.Sincos(2 * math.Pi * float64(in.DayOfYear) / 365.25)
		for i := range c.cells {
			c.data[at*c.cells+i], c.data[(at+1)*c.cells+i] = float32(sin), float32(cos)
		}
	}
}

// pair draws two planes where there is something to draw.
func (c canvas) pair(plane int, of func(i int) (first, second float32, there bool)) {
	for i := range c.in.Sea {
		first, second, there := of(i)
		if !there {
			continue
		}
		at := i/c.in.Width*c.width + i%c.in.Width
		c.data[plane*c.cells+at] = first
		if second != 0 {
			c.data[(plane+1)*c.cells+at] = second
		}
	}
}

// base is what predictions depart from at a cell.
func (c canvas) base(i int) float32 {
	switch d := c.design; {
	case !d.Departure:
		return 0
	case d.Extras.Analysis && c.in.Analysis != nil && finite(c.in.Analysis[i]):
		return c.in.Analysis[i]
	case d.Extras.Background && c.in.Background != nil && finite(c.in.Background[i]):
		return c.in.Background[i]
	}
	return 0
}
