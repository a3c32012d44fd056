package netcdf

import (
	"fmt"
	"math"
	"slices"
)

// form is how a layout stores a map: the units and the packing.
type form struct {
	units         string
	typ           string // stored type
	scale, offset float64
	fill          float64
	lo, hi        float64 // valid range of stored numbers
	attrs         []Attr  // further attributes, in place of those of the same names

	// From the units that a number has before: times · x + zero, or as a standard
	// deviation of decimal logarithms that becomes percent.
	times, zero float64
	percent     bool
}

// kelvinAtZero is 0 degC.
const kelvinAtZero = 273.15

// toKelvin returns how units of temperature become kelvin: times · x + zero.
func toKelvin(units string) (times, zero float64, ok bool) {
	switch units {
	case "K", "kelvin", "Kelvin", "degK", "deg_K", "degree_Kelvin", "degrees_Kelvin", "degree_K", "degrees_K", "kelvins":
		return 1, 0, true
	case "degree_Celsius", "degrees_Celsius", "degree_C", "degrees_C", "degC", "deg_C", "Celsius", "celsius", "C", "degree_celsius", "degrees_celsius", "°C":
		return 1, kelvinAtZero, true
	case "degree_Fahrenheit", "degrees_Fahrenheit", "degF", "degree_F", "degrees_F", "deg_F", "fahrenheit":
		return 1 / 1.8, kelvinAtZero - 32/1.8, true
	}
	return 0, 0, false
}

// kelvinWord is the spelling of kelvin: GDS 2.1 has K, the catalogue kelvin.
func (l Layout) kelvinWord() string {
	if l == GHRSST {
		return "K"
	}
	return "kelvin"
}

// valueForm returns the form of the analysis; nil: that of the input.
func (p *Product) valueForm() *form {
	if p.Layout != GHRSST && (p.Layout != CMEMS || quantityOf(p.standardName()) != ofTemperature) {
		return nil
	}
	times, zero, ok := toKelvin(p.inputUnits())
	if !ok || p.Space != Identity {
		return nil // refused by File, where the layout cannot do without
	}
	// The packing and the range of the specification: hundredths of a kelvin from
	// -3 to 45 degC.
	return &form{
		units: p.Layout.kelvinWord(), typ: "short", scale: 0.01, offset: kelvinAtZero, fill: math.MinInt16, lo: -300, hi: 4500,
		times: times, zero: zero,
		attrs: []Attr{{Name: "long_name", Value: "analysed sea surface temperature"}},
	}
}

// sigmaForm returns the form of the uncertainty; nil: as a Plain file has it.
func (p *Product) sigmaForm() *form {
	value := p.valueForm()
	switch {
	case value != nil:
		return &form{
			units: value.units, typ: "short", scale: 0.01, fill: math.MinInt16, lo: 0, hi: math.MaxInt16, times: value.times,
			attrs: []Attr{
				{Name: "long_name", Value: "estimated error standard deviation of analysed_sst"},
				{Name: "comment", Value: "1 sigma of analysed_sst in its units"},
			},
		}
	case p.Layout == CMEMS && p.Space == Log10:
		return &form{
			units: "%", typ: "float", fill: float64(companionFill), lo: 0, hi: math.Inf(1), times: 1, percent: true,
			attrs: []Attr{
				{Name: "comment", Value: "relative standard deviation r of the error, of a log-normal value: " +
					"one standard deviation of its decimal logarithm is sqrt(ln(1 + (r/100)^2)) / ln(10)"},
			},
		}
	}
	return nil
}

// stored returns v in the form.
func (to form) stored(v Var) (Var, error) {
	from, _, err := newPacking(v, func(int) bool { return true })
	if err != nil {
		return Var{}, err
	}
	same := v.Type == to.typ && to.times == 1 && to.zero == 0 && !to.percent && near(from.scale, to.scale) && near(from.offset, to.offset)
	kept := slices.DeleteFunc(slices.Clone(v.Attrs), func(a Attr) bool {
		return slices.Contains([]string{"_FillValue", "missing_value", "scale_factor", "add_offset", "valid_min", "valid_max", "valid_range", "_Unsigned", "units", "input_units"}, a.Name)
	})
	out := Var{Name: v.Name, Type: to.typ, Dims: v.Dims, Attrs: []Attr{{Name: "_FillValue", Value: to.number(to.fill)}}}
	for _, a := range to.attrs {
		kept = with(kept, a.Name, a.Value)
	}
	out.Attrs = append(append(out.Attrs, kept...), Attr{Name: "units", Value: to.units})
	if to.scale != 0 {
		out.Attrs = append(out.Attrs, Attr{Name: "scale_factor", Value: []float64{to.scale}}, Attr{Name: "add_offset", Value: []float64{to.offset}})
	}
	out.Attrs = append(out.Attrs, Attr{Name: "valid_min", Value: to.number(to.lo)})
	if !math.IsInf(to.hi, 1) {
		out.Attrs = append(out.Attrs, Attr{Name: "valid_max", Value: to.number(to.hi)})
	}
	pack, out, err := newPacking(out, nil)
	if err != nil {
		return Var{}, err
	}
	out.Raw = make([]byte, len(v.Raw)/from.size*pack.size)
	for i := range len(v.Raw) / from.size {
		cell, old := out.Raw[i*pack.size:(i+1)*pack.size], v.Raw[i*from.size:(i+1)*from.size]
		switch {
		case from.isMissing(old):
			copy(cell, pack.fill)
		case same && !pack.isMissing(old): // an observation keeps its stored bits
			copy(cell, old)
		case to.percent:
			pack.put(cell, float64(roundBits(percent(float32(from.get(old))))))
		default:
			pack.put(cell, to.times*from.get(old)+to.zero)
		}
	}
	return out, nil
}

// number returns x as an attribute of the stored type.
func (to form) number(x float64) any { return attrFromRaw(appendNumber(nil, to.typ, x), to.typ) }

// near reports whether two factors are the same, one of them in single precision.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1e-3, math.Abs(b)) }

// get returns the physical value of a stored number that is not missing.
func (p *packing) get(cell []byte) float64 { return number(cell, p.typ)*p.scale + p.offset }

// CheckLayout returns a *LayoutError where the layout of p has no place for its
// variable, or nil. It looks at nothing else of p.
func (p *Product) CheckLayout() error {
	if p.Layout != GHRSST || p.valueForm() != nil && quantityOf(p.standardName()) != ofSalinity && quantityOf(p.standardName()) != ofChlorophyll {
		return nil
	}
	return &LayoutError{p.Layout, fmt.Sprintf("%s is %q in %q, not a sea surface temperature", p.Variable, p.standardName(), p.inputUnits())}
}
