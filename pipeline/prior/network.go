package prior

import (
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"lacuna/pipeline/nn"
)

// Numbers of a level as the network's graph gets it, [batch, LevelNumbers].
const (
	levelAlpha = iota
	levelSigma
	levelGain
	levelTime // see timeOf

	// LevelNumbers is how many numbers stand for a level.
	LevelNumbers
)

// Range of ln(α/σ) that the time input tells apart: from -7.4, where the
// walk over 256×256 cells begins, with room, to where every cell is decided.
const (
	timeLogSNRFirst = -8.0
	timeLogSNRLast  = 4.0
)

// timeOf returns the time input of the network: ln(α/σ) on a scale of 0 to 1. Plain t would crowd the levels that decide coverage into its last
// hundredth.
func timeOf(l Level) float64 {
	if l.Alpha <= 0 {
		return 0
	}
	s := timeLogSNRLast
	if l.Sigma > 0 {
		s = min(max(l.LogSNR(), timeLogSNRFirst), timeLogSNRLast)
	}
	return (s - timeLogSNRFirst) / (timeLogSNRLast - timeLogSNRFirst)
}

// Numbers returns the level as the network's graph gets it.
func (l Level) Numbers() []float32 {
	return []float32{levelAlpha: float32(l.Alpha), levelSigma: float32(l.Sigma), levelGain: float32(l.Gain()), levelTime: float32(timeOf(l))}
}

// channels returns how many channels the network of c takes.
func (c Config) channels() int {
	n := 1 + c.Conditions() // the softmax of the latents
	if c.Coverage {
		n++
	}
	if c.Vicinity {
		n += len(vicinities)
	}
	return n
}

// Conditions returns how many planes a Place has.
func (c Config) Conditions() int {
	n := 1 // sea
	if c.Season {
		n += 2
	}
	if c.Yesterday {
		n += 2
	}
	if c.Frequency {
		n++
	}
	return n
}

// denoiser is the network with its input planes and its evidence.
type denoiser struct {
	cfg     Config
	network nn.Network
}

// Logits is the network of the model as a graph: it maps the difference of the
// two channels of latents, observed minus gap, [batch, 1, height, width], the
// conditions of the places [batch, Conditions, height, width] and the levels
// [batch, LevelNumbers] to the logits of "observed", [batch, 1, height, width].
func (m *Model) Logits(w nn.Weights, delta, conditions, level *Node) *Node {
	return m.net.logits(w, delta, conditions, level)
}

// logits maps the difference of the two channels of latents, observed minus
// gap, [batch, 1, height, width], the conditions of the places [batch,
// conditions, height, width] and the level [batch, LevelNumbers] to the logits of
// "observed", [batch, 1, height, width].
//
// Only the difference is looked at: softmax over two channels is its sigmoid,
// so the answer does not change when both channels are shifted.
func (d denoiser) logits(w nn.Weights, delta, conditions, level *Node) *Node {
	conditions.AssertDims(-1, d.cfg.Conditions(), -1, -1)
	level.AssertDims(-1, LevelNumbers)
	batch := delta.Shape().Dimensions[0]
	part := func(k int) *Node {
		return Reshape(Slice(level, AxisRange(), AxisElem(k)), batch, 1, 1, 1)
	}
	planes := []*Node{AddScalar(MulScalar(Logistic(delta), 2), -1), conditions}
	sea := Slice(conditions, AxisRange(), AxisRange(0, 1), AxisRange(), AxisRange())
	if d.cfg.Coverage {
		all := evidenceOf(keepSum(Mul(delta, sea)), keepSum(sea), part(levelAlpha), part(levelSigma))
		planes = append(planes, BroadcastToDims(all, delta.Shape().Dimensions...))
	}
	if d.cfg.Vicinity {
		for _, side := range vicinities {
			planes = append(planes, evidenceOf(boxSum(Mul(delta, sea), side), boxSum(sea, side), part(levelAlpha), part(levelSigma)))
		}
	}
	time := Reshape(part(levelTime), batch)
	out := d.network.Apply(w, Concatenate(planes, 1), time)
	if d.cfg.Evidence {
		// The evidence of the cell itself, so that the network only has to find
		// that of the others. Softly limited, so that it can be outvoted.
		out = Add(out, MulScalar(Tanh(MulScalar(Mul(delta, part(levelGain)), 1/evidenceLimit)), evidenceLimit))
	}
	return ClipScalar(out, -logitLimit, logitLimit)
}

// evidenceLimit is a little less than logitLimit, in logits.
const evidenceLimit = 12.0

// vicinities are the sides of the squares about each cell, in cells, over which
// the evidence is added up for the network, from the size of a wisp to that of
// half a window.
var vicinities = []int{5, 9, 17, 33}

// evidenceOf returns the mean difference over sea, of its sum and the number of
// cells, in about unit variance at every level. Early in a walk it is all that is
// known of how much will be observed, of all or around a cell, and a network of
// local filters finds it hard to add up hundreds of noisy cells.
func evidenceOf(sum, cells, alpha, sigma *Node) *Node {
	const coverageSD = 0.25 // about that of real masks; it sets the scale, not the answer
	cells = AddScalar(cells, 1)
	signal := MulScalar(Square(alpha), 4*Classes*Classes*coverageSD*coverageSD)
	grain := Div(MulScalar(Square(sigma), Classes), cells)
	return Div(Div(sum, cells), Sqrt(AddScalar(Add(signal, grain), 1e-12)))
}

// boxSum adds up x [batch, 1, height, width] over the square of an odd side
// about each cell, as far as it lies inside: along rows, then along columns. A
// product with a matrix of ones does the same, and took XLA minutes to compile
// for windows of 256×256 cells.
func boxSum(x *Node, side int) *Node {
	ones := func(h, w int) *Node { return Ones(x.Graph(), shapes.Make(x.DType(), 1, 1, h, w)) }
	return nn.Filter(nn.Filter(x, ones(1, side)), ones(side, 1))
}

// keepSum adds up [batch, 1, height, width] to [batch, 1, 1, 1].
func keepSum(x *Node) *Node {
	return Reshape(ReduceSum(x, 1, 2, 3), x.Shape().Dimensions[0], 1, 1, 1)
}

// difference returns channel observed minus channel gap of latents [batch, 2,
// height, width].
func difference(x *Node) *Node {
	channel := func(k int) *Node { return Slice(x, AxisRange(), AxisRange(k, k+1), AxisRange(), AxisRange()) }
	return Sub(channel(1), channel(0))
}

// probability returns the probability of "observed", 0 on land.
func probability(logits, conditions *Node) *Node {
	sea := Slice(conditions, AxisRange(), AxisRange(0, 1), AxisRange(), AxisRange())
	return Mul(Logistic(logits), sea)
}

// Planes of a move as the graph gets it.
const (
	moveLook = iota
	moveData // times K
	moveKeep
	moveAhead
	movePull
	moveParts
)

// moving holds the inputs of the graph of a step: x [batch, 2, height, width],
// the conditions and the level as logits takes them, the prediction of the step
// before [batch, 1, height, width], the numbers of the move [moveParts] and the
// cells that are no padding [1, 1, height, width]; guided, also the anchors
// [batch, 1, height, width].
type moving struct {
	x, conditions, level, before, move, inside, anchors *Node
}

// advance is the graph of a move: the next x, zero in padding, and the
// prediction.
//
// The pull is the gradient with respect to x of each item's loss
//
//	L = -(1/d) Σ y·log ê + (1-y)·log(1-ê)
//
// The derivative of L by a logit is (ê-y)/d, which is sent back through the
// network; the logarithms are not needed. On land ê and y are 0.
func (d denoiser) advance(w nn.Weights, in moving) (next, observed *Node) {
	part := func(k int) *Node { return Reshape(Slice(in.move, AxisElem(k)), 1, 1, 1, 1) }
	seen := Mul(in.x, part(moveLook))
	logits := d.logits(w, difference(seen), in.conditions, in.level)
	observed = probability(logits, in.conditions)
	ahead := Add(observed, Mul(Sub(observed, in.before), part(moveAhead)))
	next = Add(
		Mul(Concatenate([]*Node{OneMinus(ahead), ahead}, 1), part(moveData)),
		Mul(in.x, part(moveKeep)))
	if in.anchors != nil {
		share := Div(in.inside, ReduceAllSum(in.inside))
		back := StopGradient(Mul(Sub(observed, in.anchors), share))
		gradient := Gradient(ReduceAllSum(Mul(back, logits)), seen)[0]
		next = Sub(next, Mul(gradient, part(movePull)))
	}
	return Mul(next, in.inside), observed
}
