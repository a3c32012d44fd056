package netcdf

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The bits of Product.Flags. A pixel with none of the first four was seen by
// the sensor and is written as it was delivered.
const (
	Land               byte = 1 << iota // never filled
	Interpolated                        // the value is the analysis, not an observation
	NotReconstructible                  // neither observed nor filled: the fill value
	Rejected                            // observed, but refused by quality control
	OwnError                            // observed, and the uncertainty is the error that the input gives
)

// NeverObserved marks a pixel of the sea that none of the known days shows,
// whether it was filled or not.
const NeverObserved byte = 1 << 5

// SeaIce marks a pixel of the sea under ice, whether it has a value or not. Only
// products with Product.SeaIce have it.
const SeaIce byte = 1 << 6

// NoIce is the percentage of sea ice that is not known.
const NoIce byte = math.MaxUint8

// Observed reports whether a pixel with these flags is as the sensor saw it.
func Observed(flags byte) bool {
	return flags&(Land|Interpolated|NotReconstructible|Rejected) == 0
}

// The spaces in which Product.Sigma can be given.
const (
	Identity = "identity" // in the units of the variable
	Log10    = "log10"    // in decimal logarithms of the variable
)

// The modes of a product.
const (
	NearRealTime = "near-real-time" // saw granules up to its own time only
	Delayed      = "delayed"        // saw later granules too
)

// The inputs of a product.
const (
	Seen       = "observed"    // a granule with observations
	CloudedOut = "clouded-out" // a granule without one
	NoGranule  = "no-granule"  // no granule existed when the product was made
)

// Input says which of these the product was made for.
func (p *Product) Input() string {
	switch {
	case !slices.ContainsFunc(p.Inputs, func(in Input) bool { return in.Role == "" || in.Role == RoleTarget }):
		return NoGranule
	case !slices.ContainsFunc(p.Flags, func(f byte) bool { return f&(Land|Interpolated|NotReconstructible|Rejected) == 0 }):
		return CloudedOut
	}
	return Seen
}

// Neighbours returns the number of files beside the granule itself that had a
// part in the product.
func (p *Product) Neighbours() int {
	n := 0
	for _, in := range p.Inputs {
		if in.Role != RoleCovariate {
			n++
		}
	}
	if p.Input() != NoGranule {
		n--
	}
	return n
}

// RoleTarget is the role of the granule whose gaps were filled, and RoleCovariate that of
// a file of another variable.
const (
	RoleTarget    = "target"
	RoleCovariate = "covariate"
)

// Product is the analysis of one granule, ready to be written.
type Product struct {
	// Source is the description of the input: its dimensions, its coordinate
	// variables, the variable itself and its global attributes.
	Source   File
	Variable string // name of the variable that was filled

	// One number per cell of the variable, in its order. Value is in physical
	// units and looked at where Interpolated is set; Sigma is one standard
	// deviation in Space, NaN where unknown. Observed pixels have one too: their
	// own error where OwnError is set, else the noise that the analysis fitted.
	Value, Sigma []float32
	Lower, Upper []float32 // 5 % and 95 % quantiles in physical units; for Log10 only, else nil
	Space        string    // Identity or Log10
	Flags        []byte
	Extras       []Extra // further variables beside the analysis

	Times  []time.Time    // times of the granule, decoded, in the order of the file
	Bounds [][2]time.Time // begin and end of each field, as the granule gives them; nil: they follow from Step
	Step   time.Duration  // between two fields of the dataset; 0: as in Times, else a day

	// Attributes of the variable where the input has none.
	StandardName, LongName, Units string

	Layout   Layout   // empty: Plain
	Dataset  string   // identifier of the product dataset, without blanks
	Title    string   // "" makes one from the rest
	Summary  string   // one paragraph; "" makes one from the rest
	Keywords []string // beside those that follow from the variable
	Method   string   // how gaps were filled, as a phrase: "optimal interpolation in space and time"
	Inputs   []Input  // every file that had a part in it, the granule itself first; none is the target where no granule exists
	Model    string   // version of the model, or the name of the method
	Seed     uint64
	// Trust is how far a model was followed that was not judged on the dataset;
	// nil: there was none, or it was followed all the way.
	Trust *Trust
	// Sampling is how the networks of the model filled it; nil: they had no part.
	Sampling *Sampling
	// Tests are those that observations had to pass, as the configuration says; "":
	// none.
	Tests   string
	Refused []Refusal // what they refused, a test each
	// Covariates are the other variables that had a part in the analysis, separated by
	// commas; "": none had.
	Covariates string
	SeaIce     string // where the share of sea ice comes from, as a phrase; "": it was not looked for
	// IcePercent is the share of sea ice of each pixel of Value in percent, NoIce where
	// it is not known; nil: of none.
	IcePercent []byte
	// Caveats are sentences on what does not hold of this product, such as
	// scores that were measured otherwise.
	Caveats  []string
	Revision int
	Version  string // version of lacuna
	SeaMask  string // where the sea mask comes from, as a phrase; "": not said
	Mode     string // NearRealTime or Delayed: where one of the fields is delayed, the file is
	// Windows are the fields that had a part in the analysis of each field, and
	// tell its mode; nil: not known, and Mode is that of every field.
	Windows []Window
	// CalibrationDays is the number of days of the dataset's own from which the
	// calibration of Sigma comes; 0: it comes from elsewhere.
	CalibrationDays int

	// The dates of making. A zero one is not known and is left out; without
	// Filled the file was made at Created.
	Created   time.Time // time of this revision
	Published time.Time // when upstream published the granule
	Fetched   time.Time // when the granule was fetched
	Filled    time.Time // when the gaps were filled

	Members *MembersFile // the file of its members; nil: none
	Credits Credits
}

// A Window is the time of the first and of the last field that had a part in an
// analysis, its own field among them.
type Window struct{ First, Last time.Time }

// An Extra is a variable that accompanies the analysis: <VAR>_<Suffix>, one
// number per cell, none negative, NaN where nothing is to be said.
type Extra struct {
	Suffix, LongName, Units, Comment string
	Values                           []float32
}

// Input is a file that a product was made from.
type Input struct {
	Name   string
	SHA256 string // hex
	Role   string // RoleTarget, or a word for the part it had, such as "context" or "mask"
}

// Credits names the creator of products and the terms of their use. An empty
// field takes that of DefaultCredits.
type Credits struct {
	Name            string `yaml:"name"`            // name of the creator and publisher
	Type            string `yaml:"type"`            // group, institution, person or position
	Email           string `yaml:"email"`           // address of the creator and publisher
	URL             string `yaml:"url"`             // web page of the creator and publisher
	Institution     string `yaml:"institution"`     // institution of the creator
	Project         string `yaml:"project"`         // project of the products
	License         string `yaml:"license"`         // licence of the products
	Acknowledgement string `yaml:"acknowledgement"` // acknowledgement that users of products are asked for
}

// WriteProduct writes p to path, as Write does.
func WriteProduct(path string, p Product) error {
	f, err := p.File()
	if err != nil {
		return fmt.Errorf("describe %s: %w", path, err)
	}
	return Write(path, f)
}

// File describes the file that p becomes. It is a pure function: the same
// product gives the same description, and p is not changed. It refuses a
// product that breaks a promise of the format, see the package comment, and with a
// *LayoutError one that its layout has no place for.
func (p Product) File() (File, error) {
	f, err := p.plain()
	if err != nil {
		return File{}, err
	}
	return p.arrange(f)
}

// plain describes the file of p in the layout Plain.
func (p *Product) plain() (File, error) {
	if err := p.validate(); err != nil {
		return File{}, err
	}
	found, err := findAxes(p.Source, p.Variable)
	if err != nil {
		return File{}, err
	}
	f := p.passOn(File{Dims: slices.Clone(p.Source.Dims), Vars: slices.Clone(p.Source.Vars)}, found)
	for i, v := range f.Vars {
		f.Vars[i].Attrs = f.keptReferences(v)
	}
	f, err = p.alongTime(f, found)
	if err != nil {
		return File{}, err
	}
	f, scalars := p.coordinates(f, found)
	f = p.addBounds(f, found)
	if err != nil {
		return File{}, err
	}
	f, facts := p.addFacts(f, found)
	fields, err := p.fields(f, append(scalars, facts...))
	if err != nil {
		return File{}, err
	}
	at := slices.IndexFunc(f.Vars, func(v Var) bool { return v.Name == p.Variable })
	f.Vars = slices.Replace(f.Vars, at, at+1, fields...)
	f.Attrs = p.globals(f, found)
	return f, nil
}

// keptReferences returns the attributes of v less the names of variables that
// were not carried over, which CF forbids to point at.
func (f File) keptReferences(v Var) []Attr {
	attrs := without(v.Attrs, "DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid", "_Netcdf4Coordinates")
	for _, name := range []string{"ancillary_variables", "coordinates", "bounds", "climatology", "grid_mapping"} {
		there := strings.Fields(text(attrs, name))
		there = slices.DeleteFunc(there, func(n string) bool {
			_, ok := f.variable(strings.TrimSuffix(n, ":")) // a grid mapping may be written "crs: lat lon"
			return !ok
		})
		if len(there) > 0 {
			attrs = with(attrs, name, strings.Join(there, " "))
		} else {
			attrs = without(attrs, name)
		}
	}
	for _, name := range []string{"cell_measures", "formula_terms"} {
		for _, word := range strings.Fields(text(attrs, name)) {
			if _, ok := f.variable(word); !ok && !strings.HasSuffix(word, ":") {
				attrs = without(attrs, name)
			}
		}
	}
	return attrs
}

// Sampling says how much work the networks of a model did.
type Sampling struct {
	Tier    string // fast, standard or full
	Members int    // number of members that were drawn, stored or not; 0: none
	Sampler string // how they were drawn; empty: there are none
	Mean    string // which of two means is published, one-step or members; empty: there was one only
}

// Refusal is how many observed pixels a test has refused.
type Refusal struct {
	Test   string
	Pixels int
}

// Trust says how far a model was followed on its way from optimal interpolation.
type Trust struct {
	Model  string
	Weight float64 // 0: not at all, and the analysis is that of optimal interpolation
	Days   int     // number of scored days of the dataset behind the weight
}
