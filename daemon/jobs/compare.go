package jobs

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"
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
	old, layout, err := ReadProduct(ctx, reader, path, g)
	if err != nil {
		return Change{}, err
	}
	if next := cmp.Or(now.Product.Layout, netcdf.Plain); layout != next {
		return Change{}, fmt.Errorf("it has the layout %s, and the next one %s", layout, next)
	}
	// What the packing of the layout rounds is no change.
	ofValue, ofSigma := now.Product.Rounding()
	beyond := func(a, b float32, rounding float64) float64 { return max(0, math.Abs(float64(a)-float64(b))-rounding) }
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
			moved, surer := beyond(value[c], old[i].Value[c], ofValue), beyond(a.Sigma[c], old[i].Sigma[c], ofSigma)
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

// ReadProduct reads the fields of a product of a granule, and its layout.
func ReadProduct(ctx context.Context, reader Reader, path string, g ingest.Granule) ([]Filled, netcdf.Layout, error) {
	value, err := reader.Read(ctx, path, ingest.Options{Variable: g.Source.Variable})
	if err != nil {
		return nil, "", err
	}
	product := fill.Outline(fill.Job{Granule: g, Layout: netcdf.LayoutIn(value.Source.Attrs)})
	names := product.Names()
	beside := map[string][]field.Field{names.Uncertainty: nil, names.Flags: nil}
	for name := range beside {
		read, err := reader.Read(ctx, path, ingest.Options{Variable: name, Transform: "identity"})
		if err != nil {
			return nil, "", err
		}
		beside[name] = read.Fields
	}
	sigma, flags := beside[names.Uncertainty], beside[names.Flags]
	if len(value.Fields) != len(g.Fields) || len(sigma) != len(g.Fields) || len(flags) != len(g.Fields) || !value.Fields[0].Grid.Same(g.Fields[0].Grid) {
		return nil, "", fmt.Errorf("it has %d fields on the grid %v, the granule has %d on %v",
			len(value.Fields), value.Fields[0].Grid, len(g.Fields), g.Fields[0].Grid)
	}
	fields := make([]Filled, len(g.Fields))
	for i := range fields {
		n := len(value.Fields[i].Values)
		restored, sigmas := product.Restored(value.Fields[i].Values, sigma[i].Values)
		fields[i] = Filled{Value: make([]float32, n), Sigma: sigmas, Filled: make([]bool, n)}
		g.Transform.Forward(fields[i].Value, restored)
		for c, f := range flags[i].Values {
			fields[i].Filled[c] = finite(f) && byte(f)&infer.Interpolated != 0
		}
	}
	return fields, product.Layout, nil
}
