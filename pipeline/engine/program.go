package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// ErrOutOfMemory marks a program that did not fit into the memory of its
// device.
var ErrOutOfMemory = errors.New("out of device memory")

// A Program is a compiled graph: tensors in, tensors out. It takes shapes as
// they were when it was built.
type Program struct {
	name  string
	graph *graph.Graph
}

// Compile builds a graph and compiles it for a backend. Build declares the
// inputs with graph.Parameter, in the order in which Run takes them, and
// returns the outputs.
//
// Compile and Run are the boundary between graph code, which panics, and the
// rest of the program: whatever goes wrong inside comes back as an error.
func Compile(b backends.Backend, name string, build func(*graph.Graph) []*graph.Node) (*Program, error) {
	return compile(b, name, 0, build)
}

// CompileParallel is Compile for several devices of a backend that each run
// the graph on a part of the data. Run takes the inputs of the first device,
// then those of the second, and so on, and returns outputs likewise. Values that
// devices must share, build reduces with graph.Graph.Distributed.
func CompileParallel(b backends.Backend, name string, devices int, build func(*graph.Graph) []*graph.Node) (*Program, error) {
	if have := b.NumDevices(); devices < 1 || devices > have {
		return nil, fmt.Errorf("compile %s for %d devices: %s has %d", name, devices, b.Name(), have)
	}
	return compile(b, name, devices, build)
}

// compile compiles for one device, or for several in parallel where devices is
// not 0.
func compile(b backends.Backend, name string, devices int, build func(*graph.Graph) []*graph.Node) (*Program, error) {
	p := &Program{name: name}
	if e, ok := b.(*Engine); ok && e.log != nil {
		defer announce(e.log, name, patience)()
	}
	err := rescue(func() {
		p.graph = graph.NewGraph(b, name)
		if devices > 0 {
			spread(p.graph, devices)
		}
		p.graph.Compile(build(p.graph)...)
	})
	mendSignals()
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("compile %s: %w", name, explain(err))
	}
	return p, nil
}

// patience is how long a program is compiled without a word: on a machine that has
// compiled none before, XLA tries many ways and takes a minute or more.
const patience = 5 * time.Second

// announce says that a program is being compiled, if that takes longer than after,
// and how long it took.
func announce(log *slog.Logger, name string, after time.Duration) (done func()) {
	began, said := time.Now(), make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(said)
		log.Info("compiling a network", "program", name)
	})
	return func() {
		if timer.Stop() {
			return
		}
		<-said
		log.Info("network compiled", "program", name, "took_seconds", math.Round(time.Since(began).Seconds()*10)/10)
	}
}

// spread makes g a graph of the first devices of its backend. It panics, as
// graph code does.
func spread(g *graph.Graph, devices int) {
	mesh, err := distributed.NewDeviceMesh([]int{devices}, []string{"batch"})
	if err != nil {
		panic(err)
	}
	if err := g.SetSPMD(mesh); err != nil {
		panic(err)
	}
	numbers := make([]backends.DeviceNum, devices)
	for i := range numbers {
		numbers[i] = backends.DeviceNum(i)
	}
	if err := g.SetDeviceAssignment(numbers); err != nil {
		panic(err)
	}
}

// Run executes the program. The inputs stay the caller's, but a tensor that was
// given to one engine cannot be given to another. The outputs become the
// caller's, who finalizes them.
func (p *Program) Run(inputs ...*tensors.Tensor) ([]*tensors.Tensor, error) {
	if p.graph == nil {
		return nil, fmt.Errorf("run %s: the program is closed", p.name)
	}
	args := make([]any, len(inputs))
	for i, t := range inputs {
		args[i] = t
	}
	var out []*tensors.Tensor
	if err := rescue(func() { out = p.graph.Run(args...) }); err != nil {
		return nil, fmt.Errorf("run %s: %w", p.name, explain(err))
	}
	return out, nil
}

// explain adds the remedy to an error about exhausted memory, at run time or,
// for constants, already when compiling. It recognises the words of XLA and of
// CUDA.
func explain(err error) error {
	for _, words := range []string{"RESOURCE_EXHAUSTED", "out of memory", "Out of memory"} {
		if strings.Contains(err.Error(), words) {
			return fmt.Errorf("%w: use a smaller batch, tile or network, or free the device: %w", ErrOutOfMemory, err)
		}
	}
	return err
}

// Close frees the program's memory in its backend. It may be called twice.
func (p *Program) Close() {
	if p.graph == nil {
		return
	}
	// A graph that cannot be freed is a leak, not a reason to fail.
	_ = rescue(p.graph.Finalize)
	p.graph = nil
}

// rescue runs f and returns a panic of graph code as an error. A panic of the
// Go runtime, such as an index out of range, is a bug of ours: its stack comes
// along.
func rescue(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface {
			error
			RuntimeError()
		}:
			err = fmt.Errorf("%w\n%s", r, debug.Stack())
		case error:
			err = r
		default:
			err = errors.New(fmt.Sprint(r))
		}
	}()
	f()
	return nil
}
