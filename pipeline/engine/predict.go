package engine

import (
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/backends"
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
	if err := (&Engine{Backend: b}).Try(); err != nil {
		b.Finalize()
		return nil, fmt.Errorf("predict in bfloat16 by OpenVINO: %w; networks run in float32", err)
	}
	return b, nil
}
