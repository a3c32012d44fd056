package netcdf

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// The variables along time that say of each field what the attributes say of a
// file. Attributes do not survive when files are joined along time, these do.
const (
	modeName, modelName, revisionName = "mode", "model", "revision"
	observedName                      = "observed_fraction"
	windowFirst, windowLast           = "window_start", "window_end"
)

// factNames returns the names of these variables.
func factNames() []string {
	return []string{modeName, modelName, revisionName, observedName, windowFirst, windowLast}
}

// modelBytes is the room for the name of a model. It is the same in all files,
// so that tools which do not know strings can join them; a name that is longer
// gets as much again.
const modelBytes = 64

// addFacts returns f with the variables along time, and their names. They are
// auxiliary coordinates, so that they go with a field wherever it goes.
func (p *Product) addFacts(f File, found axes) (File, []string) {
	axis, _ := f.variable(found[timeAxis])
	dim, n := axis.Dims[0], len(p.Times)
	var modes, revisions []byte
	observed := make([]float32, n)
	for i := range n {
		modes = append(modes, byte(slices.Index([]string{NearRealTime, Delayed}, p.mode(i))))
		revisions = binary.LittleEndian.AppendUint32(revisions, uint32(p.Revision))
		observed[i] = p.observedFraction(i)
	}
	name := paddedName(p.Model)
	letters := Dim{Name: f.freeName("model_letters"), Len: len(name)}
	facts := []Var{
		{Name: modeName, Type: "byte", Raw: modes, Attrs: []Attr{
			{Name: "long_name", Value: "whether later fields had a part in the analysis"},
			{Name: "flag_values", Value: []int8{0, 1}},
			{Name: "flag_meanings", Value: NearRealTime + " " + Delayed},
		}},
		{Name: modelName, Type: "char", Dims: []string{letters.Name}, Raw: slices.Repeat(name, n), Attrs: []Attr{
			{Name: "long_name", Value: "version of the model, or name of the method, that filled the gaps"},
			{Name: "_Encoding", Value: "utf-8"},
		}},
		{Name: revisionName, Type: "int", Raw: revisions, Attrs: []Attr{
			{Name: "long_name", Value: "revision of the product; a higher one replaces a lower one"},
			{Name: "units", Value: "1"},
		}},
		{Name: observedName, Type: "float", Raw: rawFloats(observed, 0), Attrs: []Attr{
			{Name: "long_name", Value: "share of the sea that was observed"},
			{Name: "units", Value: "1"},
			{Name: "valid_range", Value: []float32{0, 1}},
		}},
	}
	facts = append(facts, p.windowVariables()...)
	var names []string
	for i := range facts {
		facts[i].Name = f.freeName(facts[i].Name)
		facts[i].Dims = append([]string{dim}, facts[i].Dims...)
		facts[i].Attrs = append(facts[i].Attrs, Attr{Name: "coverage_content_type", Value: "auxiliaryInformation"})
		names = append(names, facts[i].Name)
	}
	f.Dims, f.Vars = append(f.Dims, letters), append(f.Vars, facts...)
	return f, names
}

// windowVariables describes the windows, where they are known.
func (p *Product) windowVariables() []Var {
	if p.Windows == nil {
		return nil
	}
	describe := func(name, which string, at func(Window) time.Time) Var {
		v := Var{Name: name, Type: "double", Attrs: []Attr{
			{Name: "long_name", Value: "time of the " + which + " field that had a part in the analysis"},
			{Name: "units", Value: sinceEpoch},
			{Name: "calendar", Value: "standard"},
		}}
		for _, w := range p.Windows {
			v.Raw = appendNumber(v.Raw, v.Type, float64(at(w).UnixNano())/float64(time.Second))
		}
		return v
	}
	return []Var{
		describe(windowFirst, "first", func(w Window) time.Time { return w.First }),
		describe(windowLast, "last", func(w Window) time.Time { return w.Last }),
	}
}

// paddedName returns the name of a model, filled up with zero bytes.
func paddedName(name string) []byte {
	room := max(1, int(math.Ceil(float64(len(name))/modelBytes))) * modelBytes
	padded := make([]byte, room)
	copy(padded, name)
	return padded
}

// mode returns the mode of field i.
func (p *Product) mode(i int) string {
	switch {
	case p.Windows == nil:
		return p.Mode
	case p.Windows[i].Last.After(p.Times[i]):
		return Delayed
	}
	return NearRealTime
}

// window returns the first and the last time that had a part in the file; zero
// times where they are not known.
func (p *Product) window() (first, last time.Time) {
	for i, w := range p.Windows {
		if i == 0 || w.First.Before(first) {
			first = w.First
		}
		if i == 0 || w.Last.After(last) {
			last = w.Last
		}
	}
	return first, last
}

// observedFraction returns the share of the sea that was observed in field i; 0
// where there is no sea.
func (p *Product) observedFraction(i int) float32 {
	n := len(p.Flags) / len(p.Times)
	sea, seen := 0, 0
	for _, flags := range p.Flags[i*n : (i+1)*n] {
		if flags&Land != 0 {
			continue
		}
		sea++
		if Observed(flags) {
			seen++
		}
	}
	if sea == 0 {
		return 0
	}
	return float32(seen) / float32(sea)
}
