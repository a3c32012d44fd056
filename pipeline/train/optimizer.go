package train

import (
	"math"

	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// moments are the parts of the state that belong to one tensor of weights; all
// have its shape.
type moments struct{ weights, ema, mean, variance *Node }

// rates are the scalars of one step, all functions of its number.
type rates struct {
	learning *Node // learning rate, with Adam's bias corrections in it
	epsilon  *Node // Adam's epsilon, with the same corrections
	ema      *Node // decay of the moving average
}

// newRates returns the rates of step [] (float32, counted from 0):
//
//	warm  = min(1, (step+1)/WarmupSteps)
//	rate  = LearningRate * warm * (FinalRate + (1-FinalRate)*(1+cos(pi*min(1, step/Steps)))/2)
//	ema   = min(EMADecay, (1+step)/(10+step))
//
// The decay of the average grows from 0.1, so that the average forgets the
// random start. Adam's corrections 1-beta^(step+1) are moved out of the
// vectors into the two scalars: rate*sqrt(1-beta2^n)/(1-beta1^n) and
// epsilon*sqrt(1-beta2^n), see section 2 of Kingma and Ba, Adam (ICLR 2015).
func newRates(c Config, step *Node) rates {
	n := AddScalar(step, 1.0)
	rate := MulScalar(OnesLike(step), c.LearningRate)
	if c.WarmupSteps > 0 {
		rate = Mul(rate, MinScalar(DivScalar(n, float64(c.WarmupSteps)), 1.0))
	}
	if c.Schedule == Cosine {
		done := MinScalar(DivScalar(step, float64(c.Steps)), 1.0)
		half := MulScalar(OnePlus(Cos(MulScalar(done, math.Pi))), (1-c.FinalRate)/2)
		rate = Mul(rate, AddScalar(half, c.FinalRate))
	}
	correction1 := OneMinus(Exp(MulScalar(n, math.Log(adamBeta1))))
	correction2 := Sqrt(OneMinus(Exp(MulScalar(n, math.Log(adamBeta2)))))
	return rates{
		learning: Div(Mul(rate, correction2), correction1),
		epsilon:  MulScalar(correction2, adamEpsilon),
		ema:      MinScalar(Div(n, AddScalar(step, 10.0)), c.EMADecay),
	}
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
func (m moments) update(gradient, factor *Node, r rates) moments {
	g := Mul(gradient, factor)
	mean := Add(MulScalar(m.mean, adamBeta1), MulScalar(g, 1-adamBeta1))
	variance := Add(MulScalar(m.variance, adamBeta2), MulScalar(Square(g), 1-adamBeta2))
	move := Div(Mul(mean, r.learning), Add(Sqrt(variance), r.epsilon))
	weights := Sub(m.weights, move)
	ema := Add(weights, Mul(Sub(m.ema, weights), r.ema))
	return moments{weights: weights, ema: ema, mean: mean, variance: variance}
}
