package netcdf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"lacuna/internal/cdl"
)

// packing stores physical values as numbers of a variable:
//
//	stored = (physical - offset) / scale
//
// rounded to the nearest number of its type.
type packing struct {
	typ           string // the type that arithmetic is done in; unlike that of the variable where _Unsigned is set
	size          int    // bytes
	scale, offset float64
	lo, hi        float64  // least and greatest stored number: of the type and of valid_*
	plain         bool     // stored is physical, in single precision: the common case, and the fast one
	fill          []byte   // the number that stands for no value
	missing       [][]byte // all numbers that stand for no value, fill included
	missingFloats []float32
}

// newPacking reads the attributes of v and returns v with those attributes
// mended that CF wants in the type of the variable. It adds a _FillValue where
// there is none; observed tells which cells it must not collide with.
func newPacking(v Var, observed func(cell int) bool) (packing, Var, error) {
	if v.Type == "char" {
		return packing{}, v, fmt.Errorf("variable %s is text, not numbers", v.Name)
	}
	p := packing{typ: v.Type, size: cdl.SizeOf(v.Type), scale: 1}
	if text(v.Attrs, "_Unsigned") == "true" {
		p.typ = unsigned(v.Type)
	}
	if s := cdl.Numbers(value(v.Attrs, "scale_factor")); len(s) == 1 && s[0] != 0 {
		p.scale = s[0]
	}
	if o := cdl.Numbers(value(v.Attrs, "add_offset")); len(o) == 1 {
		p.offset = o[0]
	}
	v.Attrs = p.mendLimits(v)
	p.lo, p.hi = p.validRange(v.Attrs)
	for _, name := range []string{"_FillValue", "missing_value"} {
		p.missing = append(p.missing, p.patterns(value(v.Attrs, name))...)
	}
	if len(p.missing) == 0 {
		fill, err := p.freeNumber(v.Raw, observed)
		if err != nil {
			return packing{}, v, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		p.missing = [][]byte{fill}
	}
	p.fill = p.missing[0]
	p.plain = p.typ == "float" && p.scale == 1 && p.offset == 0
	for _, m := range p.missing {
		p.missingFloats = append(p.missingFloats, float32(number(m, p.typ)))
	}
	if value(v.Attrs, "_FillValue") == nil {
		v.Attrs = append([]Attr{{Name: "_FillValue", Value: attrFromRaw(p.fill, v.Type)}}, v.Attrs...)
	}
	return p, v, nil
}

// mendLimits returns the attributes of v with missing values and limits in the
// type of the variable. A limit that the type cannot hold has no effect and is
// dropped.
func (p *packing) mendLimits(v Var) []Attr {
	attrs := without(v.Attrs, "actual_range") // no longer true once gaps are filled
	for _, name := range []string{"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"} {
		old := value(attrs, name)
		if old == nil {
			continue
		}
		if name[0] == 'v' {
			old = p.packLimits(old, v.Type)
		}
		if mended := retype(old, v.Type); mended != nil {
			attrs = with(attrs, name, mended)
		} else {
			attrs = without(attrs, name)
		}
	}
	return attrs
}

// packLimits returns limits as stored numbers. Limits of a floating type on a
// variable of integers are in physical units, by the netCDF User's Guide.
func (p *packing) packLimits(limit any, typ string) any {
	if isFloat(typ) || !isFloat(cdl.TypeOf(limit)) {
		return limit
	}
	packed := cdl.Numbers(limit)
	lo, hi := limits(typ)
	for i, x := range packed {
		packed[i] = min(max(math.Round((x-p.offset)/p.scale), lo), hi)
	}
	slices.Sort(packed) // a negative scale turns a range round
	return packed
}

// validRange returns the limits that the type and the attributes set.
func (p *packing) validRange(attrs []Attr) (lo, hi float64) {
	lo, hi = limits(p.typ)
	numberOf := func(name string, i, n int) (float64, bool) {
		raws := p.patterns(value(attrs, name))
		if len(raws) != n {
			return 0, false
		}
		x := number(raws[i], p.typ)
		return x, !math.IsNaN(x)
	}
	a, b := lo, hi
	if x, ok := numberOf("valid_min", 0, 1); ok {
		a = max(lo, x)
	}
	if x, ok := numberOf("valid_max", 0, 1); ok {
		b = min(hi, x)
	}
	if x, ok := numberOf("valid_range", 0, 2); ok {
		a = max(lo, x)
	}
	if x, ok := numberOf("valid_range", 1, 2); ok {
		b = min(hi, x)
	}
	if a > b {
		return lo, hi // limits that let nothing through are a mistake of the input
	}
	return a, b
}

// patterns returns the bytes of each number of an attribute that has the type
// of the variable.
func (p *packing) patterns(v any) [][]byte {
	if v == nil {
		return nil
	}
	raw, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return nil
	}
	return slices.Collect(slices.Chunk(raw, p.size))
}

// freeNumber returns a number that no observed cell holds, for a variable that
// has no fill value: the default of the library if possible.
func (p *packing) freeNumber(raw []byte, observed func(cell int) bool) ([]byte, error) {
	used := map[string]bool{}
	for i := range len(raw) / p.size {
		if observed(i) {
			used[string(raw[i*p.size:(i+1)*p.size])] = true
		}
	}
	lo, hi := limits(p.typ)
	for _, x := range []float64{defaultFill(p.typ), lo, hi} {
		if c := appendNumber(nil, p.typ, x); !used[string(c)] {
			return c, nil
		}
	}
	for x := lo; x <= hi && x < lo+math.MaxUint16; x++ {
		if c := appendNumber(nil, p.typ, x); !used[string(c)] {
			return c, nil
		}
	}
	return nil, fmt.Errorf("every number of type %s is an observation, so none is left to mark gaps", p.typ)
}

// defaultFill is the fill value that netCDF-C uses where none is set.
func defaultFill(typ string) float64 {
	switch typ {
	case "float", "double":
		return 0x1.ep+122
	case "ubyte", "ushort", "uint", "uint64":
		_, hi := limits(typ)
		return hi
	}
	lo, _ := limits(typ)
	if typ == "int64" {
		return lo
	}
	return lo + 1
}

// put stores a physical value in cell: rounded, kept within the limits, and
// never mistaken for a missing value.
func (p *packing) put(cell []byte, physical float64) {
	if p.plain {
		x := min(max(physical, p.lo), p.hi)
		binary.LittleEndian.PutUint32(cell, math.Float32bits(float32(x)))
		if !p.isMissing(cell) {
			return
		}
	}
	x := (physical - p.offset) / p.scale
	if !isFloat(p.typ) {
		x = math.Round(x)
	}
	x = min(max(x, p.lo), p.hi)
	appendNumber(cell[:0], p.typ, x)
	for step := 1; p.isMissing(cell) && step <= len(p.missing); step++ {
		appendNumber(cell[:0], p.typ, p.neighbour(x, step))
	}
}

// neighbour returns the stored number that is step numbers from x, towards the
// middle of the limits.
func (p *packing) neighbour(x float64, step int) float64 {
	direction := 1.0
	if x > p.lo/2+p.hi/2 {
		direction = -1
	}
	switch p.typ {
	case "double":
		for range step {
			x = math.Nextafter(x, direction*math.MaxFloat64)
		}
		return x
	case "float":
		y := float32(x)
		for range step {
			y = math.Nextafter32(y, float32(direction*math.MaxFloat32))
		}
		return float64(y)
	}
	return x + direction*float64(step)
}

// isMissing reports whether a stored number stands for no value.
func (p *packing) isMissing(cell []byte) bool {
	if p.plain {
		x := math.Float32frombits(binary.LittleEndian.Uint32(cell))
		return x != x || slices.Contains(p.missingFloats, x)
	}
	if !isFloat(p.typ) {
		return slices.ContainsFunc(p.missing, func(m []byte) bool { return bytes.Equal(cell, m) })
	}
	x := number(cell, p.typ)
	for _, m := range p.missing {
		if number(m, p.typ) == x { // as numbers, because -0 is 0
			return true
		}
	}
	return x != x
}
