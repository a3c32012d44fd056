package netcdf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Layout is a way to name and to store the parts of an analysis.
type Layout string

// The layouts.
const (
	// Plain keeps the names, units and packing of the input.
	Plain Layout = "lacuna"
	// GHRSST is that of a Level-4 file after the GHRSST data specification GDS 2.1.
	GHRSST Layout = "ghrsst"
	// CMEMS names things as Level-4 products of the Copernicus Marine catalogue do.
	CMEMS Layout = "cmems"
)

// Layouts returns all of them.
func Layouts() []Layout { return []Layout{Plain, GHRSST, CMEMS} }

// Validate reports an unknown layout. The message begins with the key.
func (l Layout) Validate() error {
	if !slices.Contains(Layouts(), l) {
		return fmt.Errorf("layout is %q, must be %s, %s or %s", l, Plain, GHRSST, CMEMS)
	}
	return nil
}

// Names are the names of the parts of an analysis in a file.
type Names struct{ Value, Uncertainty, Flags string }

// Names returns the names for a variable of the input and its standard name, which
// tells the quantity.
func (l Layout) Names(variable, standardName string) Names {
	kind := quantityOf(standardName)
	switch {
	case l == GHRSST || l == CMEMS && kind == ofTemperature:
		return Names{"analysed_sst", "analysis_error", flagsName}
	case l == CMEMS && kind == ofSalinity:
		return Names{"sos", "sos_error", flagsName}
	case l == CMEMS && kind == ofChlorophyll:
		variable = "CHL"
	}
	return Names{variable, variable + uncertaintyEnding, flagsName}
}

const (
	flagsName         = "flags"
	uncertaintyEnding = "_uncertainty"
)

// The attributes by which a file tells its layout and the names of its parts: value,
// uncertainty and flags. Files without them are Plain.
const (
	layoutAttr = "lacuna_layout"
	namesAttr  = "lacuna_variables"
)

// LayoutIn returns the layout of a file with these global attributes.
func LayoutIn(attrs []Attr) Layout { return cmp.Or(Layout(text(attrs, layoutAttr)), Plain) }

// NamesIn returns the names of the parts in a file with these global attributes. A
// Plain file says nothing, and then those of variable are returned.
func NamesIn(attrs []Attr, variable string) Names {
	if said := strings.Fields(text(attrs, namesAttr)); len(said) == 3 {
		return Names{said[0], said[1], said[2]}
	}
	return Plain.Names(variable, "")
}

// Names returns the names of the parts of p in its file.
func (p *Product) Names() Names { return p.Layout.Names(p.Variable, p.standardName()) }

// UnitsInFile returns the units of the variable in the file of p; empty: those of
// the input.
func (p *Product) UnitsInFile() string {
	if form := p.valueForm(); form != nil {
		return form.units
	}
	return ""
}

func (p *Product) inputUnits() string {
	v, _ := p.Source.variable(p.Variable)
	return text(mendUnits(withDefault(v.Attrs, "units", p.Units)), "units")
}

// SSTType returns the code of GHRSST for the depth that a temperature is of.
func (p *Product) SSTType() string {
	switch name := p.standardName(); {
	case strings.Contains(name, "subskin"):
		return "SSTsubskin"
	case strings.Contains(name, "skin"):
		return "SSTskin"
	case strings.Contains(name, "foundation"):
		return "SSTfnd"
	case strings.HasPrefix(name, "sea_water_"):
		return "SSTdepth"
	}
	return "SSTblend" // of a depth that nobody has told
}

func (p *Product) standardName() string {
	v, _ := p.Source.variable(p.Variable)
	if s := text(v.Attrs, "standard_name"); s != "" {
		return s
	}
	return p.StandardName
}

// quantity is a kind of variable that a layout has a name for.
type quantity int

const (
	otherQuantity quantity = iota
	ofTemperature
	ofSalinity
	ofChlorophyll
)

// quantityOf tells the quantity by a standard name of CF.
func quantityOf(standardName string) quantity {
	switch {
	case strings.Contains(standardName, "air_"):
	case strings.Contains(standardName, "temperature"):
		return ofTemperature
	case strings.Contains(standardName, "salinity"):
		return ofSalinity
	case strings.Contains(standardName, "concentration_of_chlorophyll"):
		return ofChlorophyll
	}
	return otherQuantity
}

// LayoutError says that a layout has no place for a product.
type LayoutError struct {
	Layout Layout
	Why    string
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("layout %s has no place for it: %s; %s", e.Layout, e.Why, e.Remedy())
}

// Remedy says what to do.
func (e *LayoutError) Remedy() string { return "set layout: " + string(Plain) + " for this dataset" }

// Restored returns numbers read from a file of p, in its units, as the analysis has
// them: values in the units of the input, uncertainties in Space.
func (p *Product) Restored(value, sigma []float32) (inInput, inSpace []float32) {
	inInput, inSpace = slices.Clone(value), slices.Clone(sigma)
	if form := p.valueForm(); form != nil {
		for i, x := range inInput {
			inInput[i] = float32((float64(x) - form.zero) / form.times)
		}
	}
	if form := p.sigmaForm(); form != nil {
		for i, x := range inSpace {
			if inSpace[i] = float32(float64(x) / form.times); form.percent {
				inSpace[i] = decades(x)
			}
		}
	}
	return inInput, inSpace
}

// Rounding returns the largest error that the packing of a layout makes, of values
// in the units of the input and of uncertainties in Space. That of the packing of
// the input itself is not counted: its numbers are no better.
func (p *Product) Rounding() (value, sigma float64) {
	if form := p.valueForm(); form != nil {
		value = form.scale / 2 / form.times
	}
	if form := p.sigmaForm(); form != nil {
		sigma = form.scale / 2 / form.times
	}
	return value, sigma
}

// percent returns the relative standard deviation, in percent, of a log-normal number
// with a standard deviation of its decimal logarithm; decades is the inverse.
func percent(sigma float32) float32 {
	s := float64(sigma) * math.Ln10
	return float32(100 * math.Sqrt(math.Expm1(s*s)))
}

func decades(percent float32) float32 {
	r := float64(percent) / 100
	return float32(math.Sqrt(math.Log1p(r*r)) / math.Ln10)
}

// Sigma returns the uncertainties of a variable of a product, NaN where there is
// none, and whether they are those of decimal logarithms.
func Sigma(v Var) (sigma []float32, log bool) {
	sigma = Unpack(v)
	switch {
	case strings.Contains(text(v.Attrs, "long_name"), "logarithm"): // as uncertainty describes it
		return sigma, true
	case text(v.Attrs, "units") == "%":
		for i, x := range sigma {
			sigma[i] = decades(x)
		}
		return sigma, true
	}
	return sigma, false
}

// Unpack returns the numbers of a variable in its units, NaN where one is missing.
func Unpack(v Var) []float32 {
	pack, _, err := newPacking(v, func(int) bool { return true })
	if err != nil {
		return nil
	}
	out := make([]float32, len(v.Raw)/pack.size)
	for i := range out {
		out[i] = float32(math.NaN())
		if cell := v.Raw[i*pack.size : (i+1)*pack.size]; !pack.isMissing(cell) {
			out[i] = float32(pack.get(cell))
		}
	}
	return out
}
