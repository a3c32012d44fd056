package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"lacuna/internal/cdl"
)

// A coding is how the numbers of a variable stand for physical values:
//
//	physical = stored · scale + offset
//
// except that a stored number in missing, NaN or an infinity is a gap, and
// one outside low..high, in stored numbers, or least..most, in physical ones,
// is refused.
type coding struct {
	typ           string // type of the stored numbers, after _Unsigned
	scale, offset float64
	missing       []float64 // rounded to typ, so that they compare equal
	low, high     float64   // in stored numbers
	least, most   float32   // in physical values
}

// defaultFill is the value that netCDF-C writes where nothing was stored. The byte types
// have none: all their values are in use.
func defaultFill(typ string) (float64, bool) {
	switch typ {
	case "short":
		return -32767, true
	case "ushort":
		return 65535, true
	case "int":
		return -2147483647, true
	case "uint":
		return 4294967295, true
	case "int64":
		return -9223372036854775806, true
	case "uint64":
		return 18446744073709551614, true
	case "float", "double":
		return float64(float32(9.9692099683868690e+36)), true
	}
	return 0, false
}

// codingOf reads the attributes of v that give its numbers a meaning.
func codingOf(v *headerVar) (coding, error) {
	c := coding{
		typ: v.Type, scale: 1, low: math.Inf(-1), high: math.Inf(1),
		least: -math.MaxFloat32, most: math.MaxFloat32,
	}
	switch unsigned := strings.ToLower(v.Text("_Unsigned")); {
	case unsigned == "true" && slices.Contains([]string{"byte", "short", "int", "int64"}, v.Type):
		c.typ = "u" + v.Type
	case unsigned == "false" && slices.Contains([]string{"ubyte", "ushort", "uint", "uint64"}, v.Type):
		c.typ = v.Type[1:]
	}
	if s := v.Numbers("scale_factor"); len(s) > 0 {
		c.scale = s[0]
	}
	if o := v.Numbers("add_offset"); len(o) > 0 {
		c.offset = o[0]
	}
	if c.scale == 0 || !finite(c.scale) || !finite(c.offset) {
		return coding{}, bad(fmt.Sprintf("variable %s has scale_factor %g and add_offset %g", v.Name, c.scale, c.offset),
			"the file is damaged or was written wrongly: "+again+", or tell its producer")
	}
	for _, name := range []string{"_FillValue", "missing_value"} {
		c.missing = append(c.missing, c.stored(v, name)...)
	}
	if fill, ok := defaultFill(c.typ); ok && v.Attr("_FillValue") == nil {
		c.missing = append(c.missing, fill)
	}
	c.setValid(v)
	return c, nil
}

// stored returns the numbers of an attribute that is in stored numbers. One
// of the same size but other sign is reinterpreted, as _Unsigned demands.
func (c *coding) stored(v *headerVar, name string) []float64 {
	a := v.Attr(name)
	if a == nil || a.Type == "char" {
		return nil
	}
	typ := a.Type
	if typ == v.Type {
		typ = c.typ
	}
	out := cdl.Floats(typ, a.Data)
	if c.typ == "float" {
		for i, x := range out {
			out[i] = float64(float32(x)) // a double 1e20 is stored as the float next to it
		}
	}
	return out
}

// setValid takes valid_range or valid_min and valid_max. They are in stored
// numbers unless the data are packed as integers and the range is not: by the
// NetCDF conventions it then means physical values.
func (c *coding) setValid(v *headerVar) {
	set := func(name string, i int, low bool) {
		x := c.stored(v, name)
		if len(x) <= i || math.IsNaN(x[i]) {
			return
		}
		physical := !isFloat(c.typ) && isFloat(v.Attr(name).Type) && (c.scale != 1 || c.offset != 0)
		switch {
		case physical && low:
			c.least = float32(x[i])
		case physical:
			c.most = float32(x[i])
		case low:
			c.low = x[i]
		default:
			c.high = x[i]
		}
	}
	set("valid_min", 0, true)
	set("valid_max", 0, false)
	if len(v.Numbers("valid_range")) == 2 {
		set("valid_range", 0, true)
		set("valid_range", 1, false)
	}
}

func isFloat(typ string) bool { return typ == "float" || typ == "double" }

// narrow also refuses physical values outside r.
func (c *coding) narrow(r [2]float64) {
	c.least, c.most = max(c.least, float32(r[0])), min(c.most, float32(r[1]))
}

// shareCells is how many cells one goroutine unpacks: a tenth of a millisecond, beside
// which its start does not count.
const shareCells = 128 << 10

// values stores the physical values of raw in dst, NaN for a gap or a refusal,
// and marks the refusals. The cores share the cells.
func (c *coding) values(dst []float32, rejected []bool, raw []byte) {
	size := cdl.SizeOf(c.typ)
	var shares sync.WaitGroup
	for from := 0; from < len(dst); from += shareCells {
		to := min(from+shareCells, len(dst))
		shares.Go(func() { c.share(dst[from:to], rejected[from:to], raw[from*size:to*size]) })
	}
	shares.Wait()
}

// share is values of some of the cells.
func (c *coding) share(dst []float32, rejected []bool, raw []byte) {
	switch c.typ {
	case "byte":
		unpack(c, dst, rejected, viewed[int8](raw))
	case "ubyte":
		unpack(c, dst, rejected, viewed[uint8](raw))
	case "short":
		unpack(c, dst, rejected, viewed[int16](raw))
	case "ushort":
		unpack(c, dst, rejected, viewed[uint16](raw))
	case "int":
		unpack(c, dst, rejected, viewed[int32](raw))
	case "uint":
		unpack(c, dst, rejected, viewed[uint32](raw))
	case "int64":
		unpack(c, dst, rejected, viewed[int64](raw))
	case "uint64":
		unpack(c, dst, rejected, viewed[uint64](raw))
	case "float":
		unpack(c, dst, rejected, viewed[float32](raw))
	case "double":
		unpack(c, dst, rejected, viewed[float64](raw))
	}
}

func unpack[T number](c *coding, dst []float32, rejected []bool, src []T) {
	nan := float32(math.NaN())
	dst, rejected = dst[:len(src)], rejected[:len(src)]
	first, others := math.NaN(), c.missing // NaN equals nothing
	if len(others) > 0 {
		first, others = others[0], others[1:]
	}
	low, high, least, most := c.low, c.high, c.least, c.most
	for i, stored := range src {
		x := float64(stored)
		y := float32(x*c.scale + c.offset)
		missing := x == first || len(others) > 0 && slices.Contains(others, x)
		if !missing && x >= low && x <= high && y >= least && y <= most { // false for NaN and infinities
			dst[i] = y
			continue
		}
		dst[i] = nan
		rejected[i] = !missing && x-x == 0
	}
}

// numbers returns the physical values of raw in double precision, for
// coordinates and quality variables, with NaN where one is missing. A valid
// range does not matter to them.
func (c *coding) numbers(raw []byte) []float64 {
	out := cdl.Floats(c.typ, raw)
	for i, x := range out {
		if slices.Contains(c.missing, x) {
			out[i] = math.NaN()
			continue
		}
		if c.scale != 1 || c.offset != 0 {
			out[i] = x*c.scale + c.offset
		}
	}
	return out
}
