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
	errs.Add(p.validateCells())
	return errs.Err()
}

// validateCells holds the promises about pixels: a filled one has a value and
// an uncertainty, land is not filled, a rejected one does not survive.
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
		if flag == 0 {
			continue // observed: nothing is promised but its bits
		}
		if err := p.validateCell(i, flag); err != nil {
			return fmt.Errorf("cell %d: %w", i, err)
		}
	}
	return nil
}

func (p *Product) validateCell(i int, flag byte) error {
	if flag&^(Land|Interpolated|NotReconstructible|Rejected) != 0 {
		return fmt.Errorf("flags are %#x, which has unknown bits", flag)
	}
	empty := flag&(Land|NotReconstructible) != 0
	if flag&Interpolated == 0 {
		if !empty {
			return errors.New("rejected, but neither filled nor marked as not reconstructible")
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

func isFinite(x float32) bool { return x-x == 0 }

func (f File) variable(name string) (Var, bool) {
	for _, v := range f.Vars {
		if v.Name == name {
			return v, true
		}
	}
	return Var{}, false
}
