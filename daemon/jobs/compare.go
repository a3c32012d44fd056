package jobs

import (
	"context"
	"fmt"
	"math"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
)

// Change is how much a new analysis of a granule differs from its former product.
type Change struct {
	// Largest is the largest change of a value or of an uncertainty, in standard
	// deviations of the former product.
	Largest float64 `json:"largest"`
	// Comparable says that the former product could be read and has the same cells
	// filled.
	Comparable bool `json:"comparable"`
}

// Compare compares an analysis of a granule with the former product at path. The error
// says why that cannot be read.
func Compare(ctx context.Context, reader Reader, path string, g ingest.Granule, now fill.Outcome) (Change, error) {
	old, err := ReadProduct(ctx, reader, path, g)
	if err != nil {
		return Change{}, err
	}
	out := Change{Comparable: true}
	for i, a := range now.Analyses {
		value := make([]float32, len(a.Value))
		g.Transform.Forward(value, a.Value)
		for c := range value {
			filled := a.Flags[c]&infer.Interpolated != 0
			if filled != old[i].Filled[c] {
				return Change{}, nil
			}
			if !filled || !finite(old[i].Value[c]) || !finite(old[i].Sigma[c]) {
				continue
			}
			sigma := max(float64(old[i].Sigma[c]), leastSigma)
			moved := math.Abs(float64(value[c]) - float64(old[i].Value[c]))
			surer := math.Abs(float64(a.Sigma[c]) - float64(old[i].Sigma[c]))
			out.Largest = max(out.Largest, moved/sigma, surer/sigma)
		}
	}
	return out, nil
}

// leastSigma prevents a division by zero: in any units, no satellite measures
// better than to a millionth.
const leastSigma = 1e-6

// Filled is a field of a product in the space of the transform.
type Filled struct {
	Value, Sigma []float32
	Filled       []bool // the value is not an observation
}

// ReadProduct reads the fields of a product of a granule.
func ReadProduct(ctx context.Context, reader Reader, path string, g ingest.Granule) ([]Filled, error) {
	variable := g.Source.Variable
	value, err := reader.Read(ctx, path, ingest.Options{Variable: variable})
	if err != nil {
		return nil, err
	}
	beside := map[string][]field.Field{variable + "_uncertainty": nil, "flags": nil}
	for name := range beside {
		read, err := reader.Read(ctx, path, ingest.Options{Variable: name, Transform: "identity"})
		if err != nil {
			return nil, err
		}
		beside[name] = read.Fields
	}
	sigma, flags := beside[variable+"_uncertainty"], beside["flags"]
	if len(value.Fields) != len(g.Fields) || len(sigma) != len(g.Fields) || len(flags) != len(g.Fields) || !value.Fields[0].Grid.Same(g.Fields[0].Grid) {
		return nil, fmt.Errorf("it has %d fields on the grid %v, the granule has %d on %v",
			len(value.Fields), value.Fields[0].Grid, len(g.Fields), g.Fields[0].Grid)
	}
	fields := make([]Filled, len(g.Fields))
	for i := range fields {
		n := len(value.Fields[i].Values)
		fields[i] = Filled{Value: make([]float32, n), Sigma: sigma[i].Values, Filled: make([]bool, n)}
		g.Transform.Forward(fields[i].Value, value.Fields[i].Values)
		for c, f := range flags[i].Values {
			fields[i].Filled[c] = finite(f) && byte(f)&infer.Interpolated != 0
		}
	}
	return fields, nil
}
