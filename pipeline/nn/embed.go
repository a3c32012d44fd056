package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// Waves of the time embedding: from a quarter of a period over t in [0, 1],
// which orders all times, to 64 periods, which tells t=0 from t=1e-3.
const (
	timeWaves         = 16
	timePeriodsLowest = 0.25
	timePeriodsHigh   = 64
)

// timeEmbed turns a time into a vector by waves and two linear layers.
type timeEmbed struct{ first, second dense }

func newTimeEmbed(s scope, width int) timeEmbed {
	return timeEmbed{
		first:  newDense(s.in("first"), 2*timeWaves, width),
		second: newDense(s.in("second"), width, width),
	}
}

// apply maps t [batch] to an image of one pixel, [batch, width, 1, 1].
func (e timeEmbed) apply(w Weights, t *Node) *Node {
	x := ConvertDType(waves(t), computeType(w))
	return silu(e.second.apply(w, silu(e.first.apply(w, x))))
}

// waves maps t [batch] to [batch, 2*timeWaves, 1, 1]: sines, then cosines,
// scaled to variance one.
func waves(t *Node) *Node {
	t.AssertRank(1)
	radians := make([]float32, timeWaves)
	for i := range radians {
		f := float64(i) / (timeWaves - 1)
		periods := timePeriodsLowest * math.Pow(timePeriodsHigh/timePeriodsLowest, f)
		radians[i] = float32(2 * math.Pi * periods)
	}
	t = Reshape(ConvertDType(t, dtypes.Float32), -1, 1, 1, 1)
	angle := Mul(t, Const(t.Graph(), tensors.FromFlatDataAndDimensions(radians, 1, timeWaves, 1, 1)))
	return MulScalar(Concatenate([]*Node{Sin(angle), Cos(angle)}, 1), math.Sqrt2)
}
