package netcdf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// companionFill marks cells without a number in the variables that accompany
// the analysis; none of them is ever negative. It is the one CMEMS uses.
const companionFill float32 = -999

// companionBits is the number of bits that are kept of a companion's numbers:
// 12 are right to 0.02 %, far better than anyone knows an error, and the rest
// is noise that would take half of the file and of the time to write it.
const companionBits = 12

// fields returns the variable with its gaps filled and the variables that
// accompany it. auxiliary are the coordinates of f that a field must point at:
// it does not run along them.
func (p *Product) fields(f File, auxiliary []string) ([]Var, error) {
	filled, err := p.filled(f)
	if err != nil {
		return nil, err
	}
	coordinates := strings.Fields(text(filled.Attrs, "coordinates"))
	for _, s := range auxiliary {
		if !slices.Contains(coordinates, s) {
			coordinates = append(coordinates, s)
		}
	}
	if len(coordinates) > 0 {
		filled.Attrs = with(filled.Attrs, "coordinates", strings.Join(coordinates, " "))
	}
	companions := []Var{p.uncertainty(filled)}
	if p.Space == Log10 {
		companions = append(companions, p.quantile(filled, "lower", 5, p.Lower), p.quantile(filled, "upper", 95, p.Upper))
	}
	for _, x := range p.Extras {
		companions = append(companions, p.extra(filled, x))
	}
	companions = append(companions, p.flagVariable())
	names := strings.Fields(text(filled.Attrs, "ancillary_variables"))
	for _, v := range f.Vars {
		if f.isMap(v, p.Variable) && !slices.Contains(names, v.Name) && !slices.Contains(coordinates, v.Name) {
			names = append(names, v.Name)
		}
	}
	for i := range companions {
		c := &companions[i]
		c.Name, c.Dims = f.freeName(c.Name), filled.Dims
		for _, name := range []string{"coordinates", "grid_mapping"} {
			c.Attrs = withDefault(c.Attrs, name, text(filled.Attrs, name))
		}
		names = append(names, c.Name)
	}
	filled.Attrs = with(filled.Attrs, "ancillary_variables", strings.Join(names, " "))
	return append([]Var{filled}, companions...), nil
}

// filled returns the variable: observed cells as delivered, filled cells
// packed like them, the fill value elsewhere.
func (p *Product) filled(f File) (Var, error) {
	v, _ := f.variable(p.Variable)
	pack, v, err := newPacking(v, func(cell int) bool { return Observed(p.Flags[cell]) })
	if err != nil {
		return Var{}, err
	}
	v.Raw = slices.Clone(v.Raw)
	for i, flag := range p.Flags {
		cell := v.Raw[i*pack.size : (i+1)*pack.size]
		switch {
		case flag&(Land|NotReconstructible) != 0:
			copy(cell, pack.fill)
		case flag&Interpolated != 0:
			pack.put(cell, float64(p.Value[i]))
		case pack.isMissing(cell):
			return Var{}, fmt.Errorf("cell %d of %s is a gap without a flag", i, v.Name)
		}
	}
	v.Attrs = withDefault(v.Attrs, "standard_name", p.StandardName)
	v.Attrs = withDefault(v.Attrs, "long_name", p.LongName)
	v.Attrs = withDefault(v.Attrs, "long_name", strings.ReplaceAll(text(v.Attrs, "standard_name"), "_", " "))
	v.Attrs = withDefault(v.Attrs, "long_name", v.Name)
	v.Attrs = mendUnits(withDefault(v.Attrs, "units", p.Units))
	v.Attrs = with(v.Attrs, "coverage_content_type", "modelResult")
	return v, nil
}

// mendUnits spells units so that UDUNITS, and with it every CF reader,
// understands them. The words of the input are kept beside.
func mendUnits(attrs []Attr) []Attr {
	old := text(attrs, "units")
	units := old
	switch strings.ToLower(old) {
	case "degree celsius", "degrees celsius", "deg c", "degree c", "degrees c", "deg celsius":
		units = "degree_Celsius"
	case "psu", "pss", "pss-78", "practical salinity units":
		units = "1e-3" // the units that CF prescribes for practical salinity
	}
	if units == old {
		return attrs
	}
	return with(with(attrs, "units", units), "input_units", old)
}

// uncertainty describes <VAR>_uncertainty.
func (p *Product) uncertainty(filled Var) Var {
	name := text(filled.Attrs, "long_name")
	attrs := []Attr{{Name: "_FillValue", Value: []float32{companionFill}}}
	if p.Space == Log10 {
		attrs = append(attrs,
			Attr{Name: "long_name", Value: "standard deviation of the decimal logarithm of " + name},
			Attr{Name: "units", Value: "1"},
			Attr{Name: "comment", Value: fmt.Sprintf("1 sigma of log10(%s / (%s)): the true value lies within a factor of 10^sigma of the given one with a probability of about 68 %%",
				filled.Name, unitsOf(filled))})
	} else {
		if s := text(filled.Attrs, "standard_name"); s != "" && !strings.Contains(s, " ") {
			attrs = append(attrs, Attr{Name: "standard_name", Value: s + " standard_error"})
		}
		attrs = append(attrs, Attr{Name: "long_name", Value: "standard deviation of the error of " + name})
		attrs = withDefault(attrs, "units", text(filled.Attrs, "units"))
		attrs = append(attrs, Attr{Name: "comment", Value: fmt.Sprintf("1 sigma of %s in its units", filled.Name)})
	}
	if p.CalibrationDays > 0 {
		attrs = append(attrs, Attr{Name: "calibration_days", Value: []int32{int32(p.CalibrationDays)}})
	}
	attrs = append(attrs, Attr{Name: "valid_min", Value: []float32{0}}, Attr{Name: "coverage_content_type", Value: "qualityInformation"})
	return Var{Name: filled.Name + "_uncertainty", Type: "float", Attrs: attrs, Raw: p.companion(p.Sigma)}
}

// quantile describes <VAR>_lower and <VAR>_upper.
func (p *Product) quantile(filled Var, suffix string, percent int, x []float32) Var {
	attrs := []Attr{{Name: "_FillValue", Value: []float32{companionFill}}}
	attrs = withDefault(attrs, "standard_name", text(filled.Attrs, "standard_name"))
	attrs = append(attrs, Attr{Name: "long_name", Value: fmt.Sprintf("%d %% quantile of %s", percent, text(filled.Attrs, "long_name"))})
	attrs = withDefault(attrs, "units", text(filled.Attrs, "units"))
	attrs = append(attrs,
		Attr{Name: "comment", Value: fmt.Sprintf("the true value of %s lies below with a probability of %d %%", filled.Name, percent)},
		Attr{Name: "valid_min", Value: []float32{0}},
		Attr{Name: "coverage_content_type", Value: "qualityInformation"})
	return Var{Name: filled.Name + "_" + suffix, Type: "float", Attrs: attrs, Raw: p.companion(x)}
}

// extra describes a further variable.
func (p *Product) extra(filled Var, x Extra) Var {
	return Var{
		Name: filled.Name + "_" + x.Suffix, Type: "float", Raw: p.companion(x.Values),
		Attrs: []Attr{
			{Name: "_FillValue", Value: []float32{companionFill}},
			{Name: "long_name", Value: x.LongName},
			{Name: "units", Value: x.Units},
			{Name: "comment", Value: x.Comment},
			{Name: "valid_min", Value: []float32{0}},
			{Name: "coverage_content_type", Value: "auxiliaryInformation"},
		},
	}
}

// companion returns the bytes of x, rounded, with the fill value where there is
// no number: on land, in cells that were not filled, at NaN.
func (p *Product) companion(x []float32) []byte {
	raw := make([]byte, 4*len(x))
	for i, v := range x {
		if p.Flags[i]&(Land|NotReconstructible) != 0 || v != v {
			v = companionFill
		} else {
			v = roundBits(v)
		}
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return raw
}

// roundBits returns x with companionBits significant bits, rounded to nearest.
// Infinity, and numbers that would round to it, stay as they are.
func roundBits(x float32) float32 {
	const drop = 24 - companionBits
	bits := math.Float32bits(x)
	if r := math.Float32frombits((bits + 1<<(drop-1)) &^ (1<<drop - 1)); r-r == 0 {
		return r
	}
	return x
}

// flagVariable describes flags.
func (p *Product) flagVariable() Var {
	known, masks := knownFlags, []int8{int8(Land), int8(Interpolated), int8(NotReconstructible), int8(Rejected), int8(OwnError), int8(NeverObserved)}
	ice, iceComment := "", ""
	if p.SeaIce != "" {
		known, masks, ice = known|SeaIce, append(masks, int8(SeaIce)), " SEA_ICE"
		iceComment = "; SEA_ICE: sea under ice, with NOT_RECONSTRUCTIBLE where it is not filled"
	}
	return Var{
		Name: "flags", Type: "byte", Raw: p.Flags,
		Attrs: []Attr{
			{Name: "standard_name", Value: "status_flag"},
			{Name: "long_name", Value: "what is known of a pixel"},
			{Name: "valid_range", Value: []int8{0, int8(known)}},
			{Name: "flag_masks", Value: masks},
			{Name: "flag_meanings", Value: "LAND INTERPOLATED NOT_RECONSTRUCTIBLE REJECTED OBSERVATION_ERROR NEVER_OBSERVED" + ice},
			{Name: "comment", Value: "none of the first four: observed and unchanged; LAND: never filled; INTERPOLATED: the value is the analysis; " +
				"NOT_RECONSTRUCTIBLE: no value; REJECTED: observed, but refused by quality control and replaced; " +
				"OBSERVATION_ERROR: observed, and the uncertainty is the error that the input gives, instead of the noise that the analysis fitted; " +
				"NEVER_OBSERVED: sea, but on none of the days known so far, so what fills it comes from other places" + iceComment + p.adjustedNote()},
			{Name: "coverage_content_type", Value: "auxiliaryInformation"},
		},
	}
}

// adjustedNote says where observed pixels are not as they were delivered: where the
// input was merged from several sources.
func (p *Product) adjustedNote() string {
	name := p.Variable + "_source"
	if v, ok := p.Source.variable(name); !ok || !strings.HasSuffix(text(v.Attrs, "flag_meanings"), " adjusted") {
		return ""
	}
	return "; observed pixels that " + name + " marks as adjusted are freed from the bias of their source"
}

func unitsOf(v Var) string {
	if u := text(v.Attrs, "units"); u != "" {
		return u
	}
	return "1"
}
