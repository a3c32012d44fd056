package impute

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"

	"lacuna/pipeline/nn"
)

// logVarianceLimit bounds the logarithm of the variance softly on both sides:
// standard deviations from 0.03 to 33, of a variable whose own is 1.
const logVarianceLimit = 7

// MeanAndLogVariance splits the answer of a network into mean and log-variance,
// both [batch, 1, height, width]. The log-variance is nil if there is only one
// output.
func MeanAndLogVariance(answer *Node) (mean, logVariance *Node) {
	if answer.Shape().Dimensions[1] == 1 {
		return answer, nil
	}
	mean = Slice(answer, AxisRange(), AxisRange(0, 1))
	raw := Slice(answer, AxisRange(), AxisRange(1, 2))
	return mean, MulScalar(Tanh(DivScalar(raw, logVarianceLimit)), logVarianceLimit)
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
	return func(w nn.Weights, in []*Node) []*Node {
		mean, logVariance := MeanAndLogVariance(n.Apply(w, in[0], in[1]))
		if logVariance == nil {
			logVariance = ZerosLike(mean)
		}
		return []*Node{Concatenate([]*Node{mean, logVariance}, 1)}
	}
}

// residualBody maps a conditioning, noised residuals and times to the clean residuals.
func residualBody(n nn.Network) body {
	return func(w nn.Weights, in []*Node) []*Node {
		return []*Node{cleaned(n, w, in[0], in[1], in[2])}
	}
}

// cleaned maps a conditioning (image, mean, sigma and the mask of the residual), one
// for each residual or one for all, the noised residuals and times to the clean
// residuals, zero outside the mask.
func cleaned(n nn.Network, w nn.Weights, conditioning, noised, t *Node) *Node {
	dims := conditioning.Shape().Dimensions
	if batch := noised.Shape().Dimensions[0]; dims[0] != batch {
		conditioning = BroadcastToDims(conditioning, batch, dims[1], dims[2], dims[3])
	}
	last := dims[1] - 1
	known := plane(conditioning, last)
	still := Slice(conditioning, AxisRange(), AxisRange(0, last))
	return Mul(n.Apply(w, Concatenate([]*Node{still, Mul(noised, known), known}, 1), t), known)
}

// flowBody is a step of the probability flow: it maps a conditioning, noised residuals,
// the clean ones that were expected a step ago, times and the weights of the step to
// the residuals of the next step and the clean ones that are expected now.
func flowBody(n nn.Network) body {
	return func(w nn.Weights, in []*Node) []*Node {
		conditioning, noised, before, t, weights := in[0], in[1], in[2], in[3], in[4]
		clean := cleaned(n, w, conditioning, noised, t)
		weight := func(i int) *Node { return Reshape(Slice(weights, AxisRange(i, i+1)), 1, 1, 1, 1) }
		ahead := Add(clean, Mul(weight(weightAhead), Sub(clean, before)))
		return []*Node{Add(Mul(weight(weightNoised), noised), Mul(weight(weightClean), ahead)), clean}
	}
}

// plainBody maps an image and times to the raw output of the network.
func plainBody(n nn.Network) body {
	return func(w nn.Weights, in []*Node) []*Node { return []*Node{n.Apply(w, in[0], in[1])} }
}
