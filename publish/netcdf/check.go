package netcdf

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/internal/faults"
)

// validate reports everything wrong with p that does not depend on its
// coordinates.
func (p *Product) validate() error {
	var errs faults.List
	errs.Check(p.Dataset != "" && !strings.ContainsAny(p.Dataset, " \t\r\n"), "dataset %q is empty or has blanks", p.Dataset)
	errs.Check(p.Space == Identity || p.Space == Log10, "space is %q, must be %s or %s", p.Space, Identity, Log10)
	errs.Check(p.Mode == NearRealTime || p.Mode == Delayed, "mode is %q, must be %s or %s", p.Mode, NearRealTime, Delayed)
	errs.Check(!p.Created.IsZero(), "time of creation is not set")
	errs.Check(p.Model != "", "model is empty")
	errs.Check(p.Method != "", "method is empty")
	errs.Check(p.Version != "", "version is empty")
	errs.Check(p.Revision >= 0, "revision is %d, must not be negative", p.Revision)
	errs.Check(len(p.Times) > 0, "no times")
	errs.Check(len(p.Inputs) > 0, "no inputs: a product must be traceable")
	for _, in := range p.Inputs {
		sum, err := hex.DecodeString(in.SHA256)
		errs.Check(err == nil && len(sum) == 32, "input %s has no sha256 but %q", in.Name, in.SHA256)
		errs.Check(in.Name != "" && !strings.ContainsAny(in.Name, "\r\n"), "input name %q is empty or has line breaks", in.Name)
	}
	if err := p.Source.Validate(); err != nil {
		errs.Add(fmt.Errorf("source: %w", err))
	}
	errs.Add(p.validateTimes(), p.validateCells())
	return errs.Err()
}

// validateTimes holds that bounds and windows belong to the times, and that the
// mode of the file is that of its windows.
func (p *Product) validateTimes() error {
	var errs faults.List
	errs.Check(p.Bounds == nil || len(p.Bounds) == len(p.Times), "%d bounds for %d times", len(p.Bounds), len(p.Times))
	for _, b := range p.Bounds {
		errs.Check(b[1].After(b[0]), "a field covers %v to %v: the end must come after the begin", b[0], b[1])
	}
	if p.Windows == nil {
		return errs.Err()
	}
	if len(p.Windows) != len(p.Times) {
		return fmt.Errorf("%d windows for %d times", len(p.Windows), len(p.Times))
	}
	mode := NearRealTime
	for i, w := range p.Windows {
		errs.Check(!w.First.After(p.Times[i]) && !w.Last.Before(p.Times[i]), "the window %v to %v does not hold its own field of %v", w.First, w.Last, p.Times[i])
		if p.mode(i) == Delayed {
			mode = Delayed
		}
	}
	errs.Check(p.Mode == mode, "mode is %q, the windows say %q", p.Mode, mode)
	return errs.Err()
}

// validateCells holds the promises about pixels: a filled one has a value and
// an uncertainty, an observed one no impossible uncertainty, land is not
// filled, a rejected one does not survive.
func (p *Product) validateCells() error {
	v, ok := p.Source.variable(p.Variable)
	if !ok {
		return fmt.Errorf("source has no variable %q", p.Variable)
	}
	n := len(v.Raw) / max(1, cdl.SizeOf(v.Type))
	lengths := map[string]int{"value": len(p.Value), "sigma": len(p.Sigma), "flags": len(p.Flags)}
	if p.Space == Log10 {
		lengths["lower"], lengths["upper"] = len(p.Lower), len(p.Upper)
	}
	for _, name := range []string{"value", "sigma", "flags", "lower", "upper"} {
		if got, asked := lengths[name]; asked && got != n {
			return fmt.Errorf("%s has %d cells, variable %s has %d", name, got, p.Variable, n)
		}
	}
	for _, x := range p.Extras {
		if len(x.Values) != n || x.Suffix == "" {
			return fmt.Errorf("%q has %d cells, variable %s has %d", x.Suffix, len(x.Values), p.Variable, n)
		}
	}
	if p.Space != Log10 && (p.Lower != nil || p.Upper != nil) {
		return errors.New("quantiles are given for a variable that is not log-normal")
	}
	for i, flag := range p.Flags {
		if err := p.validateCell(i, flag); err != nil {
			return fmt.Errorf("cell %d: %w", i, err)
		}
	}
	return nil
}

// knownFlags are the bits that every product may have.
const knownFlags = Land | Interpolated | NotReconstructible | Rejected | OwnError | NeverObserved

func (p *Product) validateCell(i int, flag byte) error {
	known := knownFlags
	if p.SeaIce != "" {
		known |= SeaIce
	}
	if flag&^known != 0 {
		return fmt.Errorf("flags are %#x, which has unknown bits", flag)
	}
	if Observed(flag) {
		if flag&NeverObserved != 0 {
			return fmt.Errorf("flags are %#x: observed and never observed at once", flag)
		}
		return p.validateObserved(i, flag)
	}
	if flag&OwnError != 0 {
		return fmt.Errorf("flags are %#x: the error of an observation that is not there", flag)
	}
	empty := flag&(Land|NotReconstructible) != 0
	if flag&Interpolated == 0 {
		if !empty {
			return errors.New("rejected or never observed, but neither filled nor marked as not reconstructible")
		}
		return nil
	}
	switch {
	case empty:
		return fmt.Errorf("flags are %#x: filled and land or not reconstructible at once", flag)
	case !isFinite(p.Value[i]):
		return fmt.Errorf("filled with %v", p.Value[i])
	case !isFinite(p.Sigma[i]) || p.Sigma[i] < 0:
		return fmt.Errorf("filled with the uncertainty %v", p.Sigma[i])
	case p.Space == Log10 && (!isFinite(p.Lower[i]) || !isFinite(p.Upper[i]) || p.Lower[i] > p.Upper[i]):
		return fmt.Errorf("filled with the quantiles %v and %v", p.Lower[i], p.Upper[i])
	}
	return nil
}

// validateObserved checks the uncertainty of an observed pixel, which may be
// unknown unless it is the input's.
func (p *Product) validateObserved(i int, flag byte) error {
	switch sigma := p.Sigma[i]; {
	case sigma != sigma && flag&OwnError == 0: // NaN
	case !isFinite(sigma) || sigma < 0:
		return fmt.Errorf("observed with the uncertainty %v", sigma)
	case p.Space == Log10 && !(p.Lower[i] <= p.Upper[i]):
		return fmt.Errorf("observed with the quantiles %v and %v", p.Lower[i], p.Upper[i])
	}
	return nil
}

func isFinite(x float32) bool { return x-x == 0 }

func (f File) variable(name string) (Var, bool) {
	for _, v := range f.Vars {
		if v.Name == name {
			return v, true
		}
	}
	return Var{}, false
}
