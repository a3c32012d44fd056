package impute

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"lacuna/pipeline/nn"
)

// logVarianceLimit bounds the logarithm of the variance softly on both sides:
// standard deviations from 0.03 to 33, of a variable whose own is 1.
const logVarianceLimit = 7

// split returns the mean and the log-variance that a network with two outputs
// gives, both [batch, 1, height, width]. Log-variance is nil where there is one
// output.
func split(answer *Node) (mean, logVariance *Node) {
	if answer.Shape().Dimensions[1] == 1 {
		return answer, nil
	}
	mean = Slice(answer, AxisRange(), AxisRange(0, 1))
	raw := Slice(answer, AxisRange(), AxisRange(1, 2))
	return mean, MulScalar(Tanh(DivScalar(raw, logVarianceLimit)), logVarianceLimit)
}

// inUnits is split for an answer that is given in units: the mean and the
// log-variance in the units of the variable.
func inUnits(answer, unit *Node) (mean, logVariance *Node) {
	mean, logVariance = split(answer)
	mean = Mul(mean, unit)
	if logVariance != nil {
		logVariance = Add(logVariance, MulScalar(Log(unit), 2))
	}
	return mean, logVariance
}

// pointLoss returns the loss of a prediction of target, [batch, 1, height,
// width], weighted by weight and averaged over it: the mean over the cells of
// the batch whose weight is one. The answer is in units of unit. What a target holds where its weight is zero
// does not matter as long as it is finite.
//
// With a log-variance it is the negative log likelihood of a Gaussian, each
// cell weighted by its own variance to the power beta as a constant, after
// Seitzer et al., On the Pitfalls of Heteroscedastic Uncertainty Estimation
// (ICLR 2022); without one the squared error.
func pointLoss(answer, target, weight, unit *Node, beta float64) *Node {
	mean, logVariance := inUnits(answer, unit)
	return likelihood(Square(Sub(target, mean)), logVariance, weight, beta)
}

// spreadLoss is pointLoss of a prediction of zero: nothing is learned of the
// mean.
func spreadLoss(answer, target, weight, unit *Node, beta float64) *Node {
	_, logVariance := inUnits(answer, unit)
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

// flatWeights are weights cut from a vector that is an input of the graph, so
// that one compiled program serves every network of a design.
type flatWeights struct{ vector *Node }

// Weight implements nn.Weights.
func (w flatWeights) Weight(p nn.Param) *Node {
	return Reshape(Slice(w.vector, AxisRange(p.Offset, p.Offset+p.Size())), p.Dims...)
}

// computeIn returns w in bfloat16 or as it is.
func computeIn(w nn.Weights, bfloat16 bool) nn.Weights {
	if bfloat16 {
		return nn.WithDType(w, dtypes.BFloat16)
	}
	return w
}

// plane returns plane i of an image as [batch, 1, height, width].
func plane(x *Node, i int) *Node { return Slice(x, AxisRange(), AxisRange(i, i+1)) }

// predictionBody maps an image and times to mean and log-variance, [batch, 2,
// height, width]. A network without a variance gives the variance of the
// variable, 1.
func predictionBody(n nn.Network) body {
	return func(w nn.Weights, in []*Node) *Node {
		mean, logVariance := split(n.Apply(w, in[0], in[1]))
		if logVariance == nil {
			logVariance = ZerosLike(mean)
		}
		return Concatenate([]*Node{mean, logVariance}, 1)
	}
}

// imputerLoss is the loss of a batch of image, times, and target with its
// weight: pointLoss, or spreadLoss.
func imputerLoss(n nn.Network, beta float64, loss func(answer, target, weight, unit *Node, beta float64) *Node) func(w nn.Weights, batch []*Node) *Node {
	return func(w nn.Weights, batch []*Node) *Node {
		target := batch[targetTensor]
		return loss(n.Apply(w, batch[imageTensor], batch[timeTensor]), plane(target, valueOfTarget), plane(target, weightOfTarget),
			plane(target, unitOfTarget), beta)
	}
}

// residualLoss is the loss of a batch of image, times, target with its weight,
// noise, and the weights of the imputer: the imputer predicts, what it missed
// on the query is scaled by its sigma and noised, and the network n has to
// find it. The imputer learns nothing.
func residualLoss(n, imputer nn.Network, bfloat16 bool) func(w nn.Weights, batch []*Node) *Node {
	return func(w nn.Weights, batch []*Node) *Node {
		x, t, target, eps := batch[imageTensor], batch[timeTensor], batch[targetTensor], batch[epsTensor]
		said := imputer.Apply(computeIn(flatWeights{batch[epsTensor+1]}, bfloat16), x, ZerosLike(t))
		mean, logVariance := inUnits(StopGradient(said), plane(target, unitOfTarget))
		sigma := OnesLike(mean)
		if logVariance != nil {
			sigma = Exp(MulScalar(logVariance, 0.5))
		}
		hidden := Mul(plane(x, seaPlane), OneMinus(plane(x, maskPlane)))
		known := plane(target, weightOfTarget)
		residual := Mul(Div(Sub(plane(target, valueOfTarget), mean), sigma), known)
		angle := MulScalar(Reshape(t, -1, 1, 1, 1), math.Pi/2)
		noised := Mul(Add(Mul(Cos(angle), residual), Mul(Sin(angle), eps)), known)
		still := Concatenate([]*Node{x, Mul(mean, hidden), Mul(sigma, hidden)}, 1)
		return weightedMean(Square(Sub(n.Apply(w, Concatenate([]*Node{still, noised, known}, 1), t), residual)), known)
	}
}

// residualBody maps a scenery (image, mean, sigma and where the residual is
// known), one for each residual or one for all, the noised residuals and times
// to the clean residuals, zero where they are not known.
func residualBody(n nn.Network) body {
	return func(w nn.Weights, in []*Node) *Node {
		scenery, noised, t := in[0], in[1], in[2]
		dims := scenery.Shape().Dimensions
		if batch := noised.Shape().Dimensions[0]; dims[0] != batch {
			scenery = BroadcastToDims(scenery, batch, dims[1], dims[2], dims[3])
		}
		last := dims[1] - 1
		known := plane(scenery, last)
		still := Slice(scenery, AxisRange(), AxisRange(0, last))
		return Mul(n.Apply(w, Concatenate([]*Node{still, Mul(noised, known), known}, 1), t), known)
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

// plainBody maps an image and times to what the network says.
func plainBody(n nn.Network) body {
	return func(w nn.Weights, in []*Node) *Node { return n.Apply(w, in[0], in[1]) }
}
