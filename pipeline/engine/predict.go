package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/core/tensors/images"
	"golang.org/x/sys/cpu"

	"lacuna/pipeline/engine/ort"
)

// smallestForMatrices is the number of cells of a window from which on the units for
// matrices are used: for a smaller one it takes longer to compile its network for
// them than they save in the few windows of a field.
const smallestForMatrices = 128 * 128

// For returns the backend of b that predicts windows of a number of cells fastest with a
// network whose weights are constants. That is b itself but for a processor that
// multiplies matrices of bfloat16 by instructions of its own (AMX), with a libonnxruntime
// that has OpenVINO, which makes use of them; trainings keep to b, in float32. Tensors
// belong to one backend: all programs that hand them on are of the same cells.
func For(b backends.Backend, cells int) backends.Backend {
	if e, ok := b.(*Engine); ok && e.matrices != nil && cells >= smallestForMatrices {
		return e.matrices
	}
	return b
}

// errNoMatrices marks a processor or a library that has no faster way to predict. It
// is the usual case, and not worth a word.
var errNoMatrices = errors.New("no units for matrices of bfloat16, or no library that uses them")

// openMatrices returns the backend for the units for matrices of this processor.
func openMatrices(cfg ort.Config) (*ort.Backend, error) {
	if !cpu.X86.HasAMXBF16 {
		return nil, errNoMatrices
	}
	cfg.Provider, cfg.BFloat16, cfg.KeepSessions = "openvino", true, false
	b, err := ort.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoMatrices, err)
	}
	// Where memory may not become code while a program runs, as a hardened unit says,
	// OpenVINO cannot write its kernels.
	if err := tryConvolution(b); err != nil {
		b.Finalize()
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n") // the last says what, those before it where in the sources
		return nil, fmt.Errorf("OpenVINO cannot predict in bfloat16 here (%s), and networks run in float32: in a unit it needs MemoryDenyWriteExecute=no", lines[len(lines)-1])
	}
	return b, nil
}

// tryConvolution convolves an image of ones with a kernel of ones: a smaller program would
// need no kernel of OpenVINO's own.
func tryConvolution(b backends.Backend) error {
	const channels, side = 32, 8
	p, err := Compile(b, "trial", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, channels, side, side))
		kernel := graph.Ones(g, shapes.Make(dtypes.Float32, channels, channels, 3, 3))
		return []*graph.Node{graph.Convolve(x, kernel).ChannelsAxis(images.ChannelsFirst).Strides(1).PadSame().Done()}
	})
	if err != nil {
		return err
	}
	defer p.Close()
	x := tensors.FromFlatDataAndDimensions(slices.Repeat([]float32{1}, channels*side*side), 1, channels, side, side)
	defer x.FinalizeAll()
	out, err := p.Run(x)
	if err != nil {
		return err
	}
	defer out[0].FinalizeAll()
	sums, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return err
	}
	if inside := sums[side+1]; inside != 9*channels {
		return fmt.Errorf("a sum of %d ones is %v", 9*channels, inside)
	}
	return nil
}
