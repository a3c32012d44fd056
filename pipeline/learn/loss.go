package learn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/prior"
)

// pointLoss returns the loss of a prediction of target, [batch, 1, height,
// width], weighted by weight and averaged over it: the mean over the cells of
// the batch whose weight is one. Where its weight is zero, a target may hold any
// finite value.
//
// With a log-variance it is the negative log likelihood of a Gaussian, each
// cell weighted by its own variance to the power beta as a constant, after
// Seitzer et al., On the Pitfalls of Heteroscedastic Uncertainty Estimation
// (ICLR 2022); without one the squared error.
func pointLoss(answer, target, weight *Node, beta float64) *Node {
	mean, logVariance := impute.MeanAndLogVariance(answer)
	return likelihood(Square(Sub(target, mean)), logVariance, weight, beta)
}

// spreadLoss is pointLoss of a prediction of zero: the mean is not learned.
func spreadLoss(answer, target, weight *Node, beta float64) *Node {
	_, logVariance := impute.MeanAndLogVariance(answer)
	return likelihood(Square(target), logVariance, weight, beta)
}

// likelihood returns the loss of pointLoss from the squared error of each cell.
func likelihood(each, logVariance, weight *Node, beta float64) *Node {
	if logVariance != nil {
		each = MulScalar(Add(Mul(each, Exp(Neg(logVariance))), logVariance), 0.5)
		if beta > 0 {
			each = Mul(each, StopGradient(Exp(MulScalar(logVariance, beta))))
		}
	}
	return weightedMean(each, weight)
}

// weightedMean returns the sum of x times weight over the sum of weight, which
// counts as one where it is less.
func weightedMean(x, weight *Node) *Node {
	return Div(ReduceAllSum(Mul(x, weight)), MaxScalar(ReduceAllSum(weight), 1))
}

// crossEntropy returns the mean over weight of the cross-entropy between the
// probabilities that logits stand for and targets of 0 and 1.
func crossEntropy(logits, target, weight *Node) *Node {
	// log(1+exp(x)) - x·y, in the form that does not overflow.
	soft := Add(MaxScalar(logits, 0), Log(AddScalar(Exp(Neg(Abs(logits))), 1)))
	return weightedMean(Sub(soft, Mul(logits, target)), weight)
}

// plane returns plane i of an image as [batch, 1, height, width].
func plane(x *Node, i int) *Node { return Slice(x, AxisRange(), AxisRange(i, i+1)) }

// imputerLoss is the loss of a batch of image, times, and target with its
// weight: pointLoss, or spreadLoss.
func imputerLoss(n nn.Network, beta float64, loss func(answer, target, weight *Node, beta float64) *Node) func(w nn.Weights, batch []*Node) *Node {
	return func(w nn.Weights, batch []*Node) *Node {
		target := batch[targetTensor]
		return loss(n.Apply(w, batch[imageTensor], batch[timeTensor]), plane(target, ValueOfTarget), plane(target, WeightOfTarget), beta)
	}
}

// residualLoss is the loss of a batch of image, times, target with its weight,
// noise, and the weights of the imputer: the imputer predicts, its residual on
// the query is scaled by its sigma and noised, and the network n has to find it.
// The imputer learns nothing.
func residualLoss(n, imputer nn.Network, bfloat16 bool) func(w nn.Weights, batch []*Node) *Node {
	return func(w nn.Weights, batch []*Node) *Node {
		x, t, target, eps := batch[imageTensor], batch[timeTensor], batch[targetTensor], batch[epsTensor]
		fixed := nn.Slices(batch[epsTensor+1])
		if bfloat16 {
			fixed = nn.WithDType(fixed, dtypes.BFloat16)
		}
		said := imputer.Apply(fixed, x, ZerosLike(t))
		mean, logVariance := impute.MeanAndLogVariance(StopGradient(said))
		sigma := OnesLike(mean)
		if logVariance != nil {
			sigma = Exp(MulScalar(logVariance, 0.5))
		}
		hidden := Mul(plane(x, impute.SeaPlane), OneMinus(plane(x, impute.MaskPlane)))
		known := plane(target, WeightOfTarget)
		residual := Mul(Div(Sub(plane(target, ValueOfTarget), mean), sigma), known)
		angle := MulScalar(Reshape(t, -1, 1, 1, 1), math.Pi/2)
		noised := Mul(Add(Mul(Cos(angle), residual), Mul(Sin(angle), eps)), known)
		still := Concatenate([]*Node{x, Mul(mean, hidden), Mul(sigma, hidden)}, 1)
		return weightedMean(Square(Sub(n.Apply(w, Concatenate([]*Node{still, noised, known}, 1), t), residual)), known)
	}
}

// reliabilityLoss is the loss of a batch of masks, times, and target with its
// weight.
func reliabilityLoss(n nn.Network) func(w nn.Weights, batch []*Node) *Node {
	return func(w nn.Weights, batch []*Node) *Node {
		target := batch[targetTensor]
		return crossEntropy(n.Apply(w, batch[imageTensor], batch[timeTensor]), plane(target, 0), plane(target, 1))
	}
}

// priorLoss is the loss of a batch of noised masks, conditions, levels and
// truth: ||ê - e||² over the two classes, the mean over the sea of the batch.
// The weight of all times is one: that of a Bayesian Flow Network has no bound
// under a schedule that ends without noise. The truth is 0 and 1.
func priorLoss(m *prior.Model) func(w nn.Weights, batch []*Node) *Node {
	return func(w nn.Weights, batch []*Node) *Node {
		sea := plane(batch[placeTensor], 0)
		logits := m.Logits(w, batch[deltaTensor], batch[placeTensor], batch[levelTensor])
		miss := Mul(Sub(Logistic(logits), batch[truthTensor]), sea)
		return MulScalar(Div(ReduceAllSum(Square(miss)), AddScalar(ReduceAllSum(sea), 1)), prior.Classes)
	}
}
