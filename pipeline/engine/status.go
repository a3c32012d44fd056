package engine

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// Status says whether an engine can be used on this machine.
type Status struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Detail string `json:"detail"` // description and origin of the engine, or the reason why it cannot be used
}

// List tries every engine: a usable one has just computed a sum.
func List(cfg Config) []Status {
	var list []Status
	for _, name := range []string{ORT, ORTCUDA, XLACUDA} {
		s := Status{Name: name}
		detail, err := try(name, cfg)
		if s.Usable, s.Detail = err == nil, detail; err != nil {
			s.Detail = err.Error()
		}
		list = append(list, s)
	}
	return list
}

// try opens an engine, computes a sum on it and closes it.
func try(name string, cfg Config) (string, error) {
	e, err := open(name, cfg)
	if err != nil {
		return "", err
	}
	defer e.Finalize()
	if err := e.Try(); err != nil {
		return "", err
	}
	return describe(e), nil
}

// Try computes 1+2, which a device that is gone does not.
func (e *Engine) Try() error {
	p, err := Compile(e, "trial", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2))
		return []*graph.Node{graph.Add(x, graph.Reverse(x, 0))}
	})
	if err != nil {
		return err
	}
	defer p.Close()
	x := tensors.FromFlatDataAndDimensions([]float32{1, 2}, 2)
	defer x.FinalizeAll()
	out, err := p.Run(x)
	if err != nil {
		return err
	}
	defer out[0].FinalizeAll()
	sum, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return err
	}
	if sum[0] != 3 || sum[1] != 3 {
		return fmt.Errorf("computes 1+2 = %v", sum)
	}
	return nil
}

// describe returns the description of an engine, the path of its library, and
// the reasons why others were passed over.
func describe(e *Engine) string {
	text := e.Description() + "; " + e.Library
	for _, err := range e.Refused {
		text += "; " + err.Error()
	}
	return text
}
