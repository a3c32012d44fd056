package impute

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// A Conditioning is the input of the members network for a window apart from
// the residual. It does not change while noise is removed, and stays on the
// device until it is closed.
type Conditioning struct {
	Height, Width int // size of the window in cells

	planes                    *tensors.Tensor // [1, planes of the model + 3, padded height, padded width]
	paddedHeight, paddedWidth int
}

// Close frees the conditioning's memory on its device. The zero value has none.
func (s Conditioning) Close() { release(s.planes) }

// In returns the members for another runner; model must be the imputer in that runner.
func (m *Members) In(runner *Runner, model *Model) *Members {
	o := *m.loaded
	o.vector = nil
	return &Members{model: model, training: m.training, pair: m.pair, runner: runner, loaded: &o}
}

// Operations returns the multiplications and additions of one step of one member, as
// those of a Model.
func (m *Members) Operations(height, width int) float64 {
	return operations(m.loaded.network, height, width)
}

// Conditioning returns the conditioning of a window for which the model predicted p.
func (m *Members) Conditioning(in Inputs, p Prediction) (Conditioning, error) {
	if err := in.Validate(); err != nil {
		return Conditioning{}, fmt.Errorf("draw members: %w", err)
	}
	s := Conditioning{Height: in.Height, Width: in.Width}
	s.paddedHeight, s.paddedWidth = padded(in, m.loaded.network)
	data := make([]float32, m.stillPlanes()*s.paddedHeight*s.paddedWidth)
	m.encode(Image{data, s.paddedHeight, s.paddedWidth}, &in, p)
	s.planes = tensors.FromFlatDataAndDimensions(data, 1, m.stillPlanes(), s.paddedHeight, s.paddedWidth)
	return s, nil
}

// Clean is one denoising step: it returns the expected clean residuals of x,
// residuals of one window at time t, in units of the prediction's sigma and
// zero where a cell is visible or land. It computes a batch of them whatever
// the number of x, which must not be larger, so that one program serves all.
func (m *Members) Clean(ctx context.Context, s Conditioning, batch int, t float32, x [][]float32) ([][]float32, error) {
	if len(x) > batch {
		return nil, fmt.Errorf("clean residuals: %d residuals do not fit into a batch of %d", len(x), batch)
	}
	answer, err := m.step(ctx, s.planes, s.residuals(batch, x), t)
	if err != nil {
		return nil, fmt.Errorf("clean residuals: %w", err)
	}
	out := make([][]float32, len(x))
	for i := range out {
		out[i] = make([]float32, s.Height*s.Width)
		s.crop(out[i], answer, i)
	}
	return out, nil
}

// residuals returns residuals of the window as a batch, padded.
func (s Conditioning) residuals(batch int, x [][]float32) residuals {
	cells := s.paddedHeight * s.paddedWidth
	data := make([]float32, batch*cells)
	for i := range x {
		for row := range s.Height {
			copy(data[i*cells+row*s.paddedWidth:], x[i][row*s.Width:(row+1)*s.Width])
		}
	}
	return residuals{data, batch, s.paddedHeight, s.paddedWidth}
}

// crop copies item i of a padded batch to the cells of the window.
func (s Conditioning) crop(to, padded []float32, i int) {
	padded = padded[i*s.paddedHeight*s.paddedWidth:]
	for row := range s.Height {
		copy(to[row*s.Width:(row+1)*s.Width], padded[row*s.paddedWidth:])
	}
}

// stillPlanes returns the number of planes of a conditioning: those of the
// model, its mean and sigma, and the mask of the residual.
func (m *Members) stillPlanes() int { return m.model.design.Planes() + memberPlanes - 1 }

// encode writes the planes of a conditioning.
func (m *Members) encode(picture Image, in *Inputs, p Prediction) {
	m.model.design.Encode(picture, in, Level{})
	planes := m.model.design.Planes()
	mean, sigma, known := picture.Plane(planes), picture.Plane(planes+1), picture.Plane(planes+2)
	for k, sea := range in.Sea {
		if in.Visible[k] || !sea {
			continue
		}
		at := k/in.Width*picture.Width + k%in.Width
		mean[at], sigma[at], known[at] = p.Mean[k]-m.model.design.Base(in, k), p.Sigma[k], 1
	}
}

// residuals are the noised residuals of one batch.
type residuals struct {
	data                 []float32
	batch, height, width int
}

func (r residuals) tensor() *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(r.data, r.batch, 1, r.height, r.width)
}

// step runs the network on residuals that share the time t. There is one
// conditioning for each, or one for all.
func (m *Members) step(ctx context.Context, conditioning *tensors.Tensor, r residuals, t float32) ([]float32, error) {
	times := make([]float32, r.batch)
	for i := range times {
		times[i] = t
	}
	noised := r.tensor()
	at := tensors.FromFlatDataAndDimensions(times, r.batch)
	defer release(noised, at)
	return m.runner.run(ctx, "residual", m.loaded, residualBody(m.loaded.network), conditioning, noised, at)
}
