package products

import "strings"

// A Unit is a spelling of units: the name in the table of products of what it
// measures, and its numbers by those of the table, number = scale · table + zero.
type Unit struct {
	Name        string
	Scale, Zero float64
}

// kelvinAtZero is 0 degC.
const kelvinAtZero = 273.15

// UnitOf returns the meaning of units, however they are spelled: producers write
// mg m-3 as mg/m^3, mg.m-3, milligram m**-3 and ug/l. Unknown units have no name.
// The unit 1 has none either: too many things are counted in it.
func UnitOf(units string) Unit {
	u := strings.ToLower(strings.TrimSpace(units))
	switch u {
	case "1e-3", "0.001", "1.e-3", "1e-03", "10^-3", "10-3":
		return Unit{"1e-3", 1, 0}
	}
	u = strings.NewReplacer("µ", "u", "μ", "u", "³", "3", "⁻", "-", "¹", "1", "°", "deg", "milligrams", "mg", "milligram", "mg",
		"micrograms", "ug", "microgram", "ug", "kilograms", "kg", "kilogram", "kg", "litre", "l", "liter", "l").Replace(u)
	u = strings.Join(strings.FieldsFunc(u, func(r rune) bool { return strings.ContainsRune(" _^*.()", r) }), "")
	switch u {
	case "mgm-3", "mg/m3", "ugl-1", "ug/l", "mg/m-3":
		return Unit{"mg m-3", 1, 0}
	case "kgm-3", "kg/m3":
		return Unit{"mg m-3", 1e-6, 0}
	case "gm-3", "g/m3", "mgl-1", "mg/l":
		return Unit{"mg m-3", 1e-3, 0}
	case "degc", "c", "celsius", "degcelsius", "degreecelsius", "degreescelsius", "degreec", "degreesc":
		return Unit{"degC", 1, 0}
	case "k", "kelvin", "kelvins", "degk", "degreek", "degreesk", "degkelvin", "degreekelvin", "degreeskelvin":
		return Unit{"degC", 1, kelvinAtZero}
	case "degf", "f", "fahrenheit", "degreef", "degreesf", "degreefahrenheit", "degreesfahrenheit":
		return Unit{"degC", 1.8, 32}
	case "psu", "pss", "pss-78", "pss78", "practicalsalinityunit", "practicalsalinityunits", "gkg-1", "g/kg", "ppt", "permil", "permille", "‰":
		return Unit{"1e-3", 1, 0}
	case "kgkg-1", "kg/kg":
		return Unit{"1e-3", 1e-3, 0}
	}
	return Unit{}
}

// SameStep reports whether a difference is the same number in both units, as it is
// in kelvin and degrees Celsius.
func (u Unit) SameStep(o Unit) bool { return u.Name != "" && u.Name == o.Name && u.Scale == o.Scale }

// In returns a number in the units of the product as one in units of a file. Units
// that measure something else leave it as it is.
func (p Product) In(units string, x float64) float64 {
	if u := UnitOf(units); u.Name == p.Units && u.Name != "" {
		return u.Scale*x + u.Zero
	}
	return x
}

// RangeIn returns the range of p in the units that the variable has.
func (p Product) RangeIn(units string) [2]float64 {
	return [2]float64{p.In(units, p.Range[0]), p.In(units, p.Range[1])}
}

// Between returns how a number of one unit becomes one of another, number · scale +
// zero; false where that is not known. Units that are not given are those of the
// other.
func Between(from, to string) (scale, zero float64, ok bool) {
	if from == "" || to == "" || strings.TrimSpace(from) == strings.TrimSpace(to) {
		return 1, 0, true
	}
	a, b := UnitOf(from), UnitOf(to)
	if a.Name == "" || a.Name != b.Name {
		return 0, 0, false
	}
	scale = b.Scale / a.Scale
	return scale, b.Zero - scale*a.Zero, true
}
