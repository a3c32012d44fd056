package ort

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	runtimelib "github.com/yalue/onnxruntime_go"

	"lacuna/pipeline/engine/ort/onnx"
)

// executable is a graph that ONNX Runtime has compiled. It may run in several
// goroutines at once.
type executable struct {
	backend  *Backend
	name     string
	names    []string
	inputs   []shapes.Shape
	outputs  []shapes.Shape
	dummy    *buffer // fed to a graph without inputs
	finalize sync.Once
	session  *runtimelib.DynamicAdvancedSession
	shared   *shared // the session, where others may use it too
}

// compile writes the program as a model and opens a session on it.
func (b *Backend) compile(name string, p *program, outputs []*value) (backends.Executable, error) {
	if len(outputs) == 0 {
		return nil, errors.New("the graph has no output")
	}
	e := &executable{backend: b, name: name}
	for _, v := range p.params {
		e.names, e.inputs = append(e.names, v.name), append(e.inputs, v.shape)
	}
	for _, v := range outputs {
		e.outputs = append(e.outputs, v.shape)
	}
	if name == "" {
		name = "graph"
	}
	model, err := transcribe(name, p, outputs)
	if err != nil {
		return nil, err
	}
	if len(e.inputs) == 0 {
		if e.dummy, err = b.newBuffer(dummyShape()); err != nil {
			return nil, err
		}
	}
	if err := b.attach(e, model); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.open[e] = true
	b.mu.Unlock()
	return e, nil
}

// attach opens a session on a model for e, or takes that of a model which was the same
// to the last bit.
func (b *Backend) attach(e *executable, model *onnx.Model) error {
	data, err := onnx.Marshal(model)
	if err != nil {
		return err
	}
	compile := func() (session *runtimelib.DynamicAdvancedSession, err error) {
		open := func() (err error) {
			session, err = b.openSession(data, infoNames(model.Graph.Inputs), infoNames(model.Graph.Outputs))
			return err
		}
		if b.provider == openVINO {
			err = keepingSignalStack(open)
		} else {
			err = open()
		}
		return session, err
	}
	if !b.keeps() || len(data) > largestKept {
		e.session, err = compile()
		return err
	}
	if e.shared, err = kept.take(sessionKey{sha256.Sum256(data), b.provider, b.cfg.Threads}, compile); err == nil {
		e.session = e.shared.session
	}
	return err
}

// openSession compiles a model.
func (b *Backend) openSession(model []byte, inputs, outputs []string) (*runtimelib.DynamicAdvancedSession, error) {
	opts, err := b.sessionOptions()
	if err != nil {
		return nil, err
	}
	defer destroy(opts)
	return runtimelib.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, opts)
}

func infoNames(infos []onnx.ValueInfo) []string {
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name
	}
	return names
}

// Inputs returns the parameters' names and shapes.
func (e *executable) Inputs() (names []string, inputShapes []shapes.Shape) { return e.names, e.inputs }

// Outputs returns the shapes of the outputs.
func (e *executable) Outputs() []shapes.Shape { return e.outputs }

// Execute runs the graph. Outputs get memory of their own: never that of an
// input, not even of a donated one, since the runtime may still read a weight
// after its update was written. Donated inputs go back to the pool after the
// run, for the next one to use.
func (e *executable) Execute(inputs []backends.Buffer, donate []bool, _ backends.DeviceNum) ([]backends.Buffer, error) {
	if len(inputs) != len(e.inputs) {
		return nil, fmt.Errorf("run graph %q: %d inputs, want %d", e.name, len(inputs), len(e.inputs))
	}
	in, err := e.bind(inputs)
	if err != nil {
		return nil, fmt.Errorf("run graph %q: %w", e.name, err)
	}
	out, results, err := e.allocate()
	if err != nil {
		return nil, fmt.Errorf("run graph %q: %w", e.name, err)
	}
	err = e.session.Run(in, out)
	runtime.KeepAlive(inputs)
	if err != nil {
		e.discard(results)
		return nil, fmt.Errorf("run graph %q: %w", e.name, err)
	}
	for i, given := range donate {
		if !given {
			continue
		}
		if err := e.backend.BufferFinalize(inputs[i]); err != nil {
			return nil, fmt.Errorf("recycle input %d of graph %q: %w", i, e.name, err)
		}
	}
	return results, nil
}

// bind checks the inputs and returns the runtime's view of them.
func (e *executable) bind(inputs []backends.Buffer) ([]runtimelib.Value, error) {
	if e.dummy != nil {
		return []runtimelib.Value{e.dummy.value}, nil
	}
	in := make([]runtimelib.Value, len(inputs))
	for i, opaque := range inputs {
		x, err := asBuffer(opaque)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", e.names[i], err)
		}
		if !x.shape.Equal(e.inputs[i]) {
			return nil, fmt.Errorf("input %q has shape %s, want %s", e.names[i], x.shape, e.inputs[i])
		}
		in[i] = x.value
	}
	return in, nil
}

// allocate takes buffers for the outputs.
func (e *executable) allocate() ([]runtimelib.Value, []backends.Buffer, error) {
	out := make([]runtimelib.Value, len(e.outputs))
	results := make([]backends.Buffer, len(e.outputs))
	for i, shape := range e.outputs {
		x, err := e.backend.newBuffer(shape)
		if err != nil {
			e.discard(results[:i])
			return nil, nil, err
		}
		out[i], results[i] = x.value, x
	}
	return out, results, nil
}

// discard gives back outputs that were not filled.
func (e *executable) discard(results []backends.Buffer) {
	for _, opaque := range results {
		if x, err := asBuffer(opaque); err == nil {
			_ = e.backend.release(x) // the error of the run is reported instead
		}
	}
}

// Finalize closes the session, or gives it back where others may use it.
func (e *executable) Finalize() {
	e.finalize.Do(func() {
		e.backend.mu.Lock()
		delete(e.backend.open, e)
		e.backend.mu.Unlock()
		if e.shared != nil {
			kept.give(e.shared)
		} else {
			destroy(e.session)
		}
		if e.dummy != nil {
			_ = e.backend.release(e.dummy)
		}
	})
}
