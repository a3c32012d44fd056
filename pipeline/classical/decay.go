package classical

import "math"

// A solve takes thousands of exponentials. They come from a table of exp(-x) and
// the first terms of its series from one entry to the next, which agree with
// math.Exp to 1e-11 in a third of its time.
const (
	perUnit  = 64 // entries from x to x+1
	farthest = 40 // exp(-40) is nothing beside the jitter
)

var decayTable = func() (t [farthest*perUnit + 1]float64) {
	for i := range t {
		t[i] = math.Exp(-float64(i) / perUnit)
	}
	return t
}()

// decays stores exp(-distance) from one place to each of others.
func decays(dst []float64, others [][3]float64, from [3]float64) {
	dst = dst[:len(others)]
	for i := range others {
		o := &others[i]
		dx, dy, dz := o[0]-from[0], o[1]-from[1], o[2]-from[2]
		x := min(math.Sqrt(dx*dx+dy*dy+dz*dz), farthest)
		at := int(x * perUnit)
		f := x - float64(at)*(1.0/perUnit)
		dst[i] = decayTable[at] * (1 - f*(1-f*(0.5-f*(1.0/6-f*(1.0/24)))))
	}
}
