package noise

import "math"

// SmoothField returns a stationary Gaussian random field of height × width
// cells whose correlation falls to 1/e at lengthCells: white noise, numbers of
// index of the stream, under a Gaussian of half that width. Noise beyond the
// edges takes part, so the edges are as smooth and as rough as the middle.
func SmoothField(height, width int, lengthCells float64, stream Stream) []float32 {
	kernel := gaussian(lengthCells / 2)
	radius := len(kernel) / 2
	wide, high := width+2*radius, height+2*radius
	white := make([]float32, wide*high)
	stream.Normals(white, 0)

	along := make([]float32, high*width) // smoothed along rows
	for i := range high {
		for j := range width {
			along[i*width+j] = dot(kernel, white[i*wide+j:i*wide+j+len(kernel)])
		}
	}
	out := make([]float32, height*width)
	for i := range height {
		row := out[i*width : (i+1)*width]
		for k, weight := range kernel {
			for j, v := range along[(i+k)*width : (i+k+1)*width] {
				row[j] += weight * v
			}
		}
	}
	return out
}

// gaussian returns a kernel out to three standard deviations.
func gaussian(sigmaCells float64) []float32 {
	radius := int(math.Ceil(3 * sigmaCells))
	kernel := make([]float32, 2*radius+1)
	for i := range kernel {
		z := float64(i-radius) / sigmaCells
		kernel[i] = float32(math.Exp(-z * z / 2))
	}
	return kernel
}

func dot(a, b []float32) float32 {
	var sum float32
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
