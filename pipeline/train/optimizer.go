package train

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// moments are the parts of the state that belong to one tensor of weights; all
// have its shape.
type moments struct{ weights, ema, mean, variance *Node }

// rates are the scalars of one step, all functions of its number. They are computed
// beside the program and given to it, so that trainings of other lengths and
// schedules share one: to compile it takes seconds, on a GPU many.
type rates struct {
	learning float64 // learning rate, with Adam's bias corrections in it
	epsilon  float64 // Adam's epsilon, with the same corrections
	ema      float64 // decay of the moving average
}

// newRates returns the rates of a step, counted from 0:
//
//	warm  = min(1, (step+1)/WarmupSteps)
//	rate  = LearningRate * warm * (FinalRate + (1-FinalRate)*(1+cos(pi*min(1, step/Steps)))/2)
//	ema   = min(EMADecay, (1+step)/(10+step))
//
// The decay of the average grows from 0.1, so that the average forgets the
// random start. Adam's corrections 1-beta^(step+1) are moved out of the
// vectors into the two scalars: rate*sqrt(1-beta2^n)/(1-beta1^n) and
// epsilon*sqrt(1-beta2^n), see section 2 of Kingma and Ba, Adam (ICLR 2015).
func newRates(c Config, step int) rates {
	n := float64(step + 1)
	rate := c.LearningRate
	if c.WarmupSteps > 0 {
		rate *= min(1, n/float64(c.WarmupSteps))
	}
	if c.Schedule == Cosine {
		done := min(1, float64(step)/float64(c.Steps))
		rate *= c.FinalRate + (1-c.FinalRate)*(1+math.Cos(math.Pi*done))/2
	}
	root := math.Sqrt(1 - math.Pow(adamBeta2, n))
	return rates{
		learning: rate * root / (1 - math.Pow(adamBeta1, n)),
		epsilon:  adamEpsilon * root,
		ema:      min(c.EMADecay, n/(n+9)),
	}
}

// tensor returns the rates as an input of the program.
func (r rates) tensor() *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions([]float32{float32(r.learning), float32(r.epsilon), float32(r.ema)}, 3)
}

// rateNodes are the rates within a program.
type rateNodes struct{ learning, epsilon, ema *Node }

// ratesOf adds the input of rates to g.
func ratesOf(g *Graph) rateNodes {
	all := Parameter(g, "rates", shapes.Make(dtypes.Float32, 3))
	at := func(i int) *Node { return Reshape(Slice(all, AxisRange(i, i+1))) }
	return rateNodes{learning: at(0), epsilon: at(1), ema: at(2)}
}

// clip returns the length of all gradients together and the factor for each that
// makes it at most longest (0: any).
func clip(gradients []*Node, longest float64) (norm, factor *Node) {
	sum := ReduceAllSum(Square(gradients[0]))
	for _, g := range gradients[1:] {
		sum = Add(sum, ReduceAllSum(Square(g)))
	}
	norm = Sqrt(sum)
	if longest == 0 {
		return norm, OnesLike(norm)
	}
	// A zero gradient gives 1: the larger of the two is never below longest.
	return norm, Div(Scalar(norm.Graph(), norm.DType(), longest), MaxScalar(norm, longest))
}

// update is one step of Adam and of the moving average.
func (m moments) update(gradient, factor *Node, r rateNodes) moments {
	g := Mul(gradient, factor)
	mean := Add(MulScalar(m.mean, adamBeta1), MulScalar(g, 1-adamBeta1))
	variance := Add(MulScalar(m.variance, adamBeta2), MulScalar(Square(g), 1-adamBeta2))
	move := Div(Mul(mean, r.learning), Add(Sqrt(variance), r.epsilon))
	weights := Sub(m.weights, move)
	ema := Add(weights, Mul(Sub(m.ema, weights), r.ema))
	return moments{weights: weights, ema: ema, mean: mean, variance: variance}
}
