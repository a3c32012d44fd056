package netcdf

import (
	"fmt"
	"slices"
	"strings"
)

// MembersFile is the file of members that belongs to a product. The product
// carries its hash, so that the hash of a product stands for both.
type MembersFile struct {
	Name   string // beside the product
	SHA256 string // hex
	Count  int    // number of members
}

// WriteMembers writes members of p to path, as Write does.
func WriteMembers(path string, p Product, members [][]float32) error {
	f, err := p.MembersFile(members)
	if err != nil {
		return fmt.Errorf("describe %s: %w", path, err)
	}
	return Write(path, f)
}

// MembersFile describes the file of members of p: its variable once for every
// member, along a dimension realization, with the coordinates and attributes of
// the product. Each member has one number per cell of the variable, in the order
// of Value. Pixels that were not filled are those of the product, bit for bit.
// Members of p itself is not looked at.
func (p Product) MembersFile(members [][]float32) (File, error) {
	p.Members = nil
	f, err := p.plain()
	if err != nil {
		return File{}, err
	}
	v, _ := f.variable(p.Variable)
	stacked, err := p.stack(v, members)
	if err != nil {
		return File{}, err
	}
	number := Var{Name: f.freeName("realization"), Type: "int", Attrs: []Attr{
		{Name: "standard_name", Value: "realization"},
		{Name: "long_name", Value: "number of the member"},
		{Name: "units", Value: "1"},
		{Name: "coverage_content_type", Value: "coordinate"},
	}}
	number.Dims = []string{number.Name}
	for k := range members {
		number.Raw = appendNumber(number.Raw, number.Type, float64(k+1))
	}
	stacked.Dims = append([]string{number.Name}, v.Dims...)
	stacked.Attrs = without(v.Attrs, "ancillary_variables")
	companions := strings.Fields(text(v.Attrs, "ancillary_variables"))
	out := File{Dims: append([]Dim{{Name: number.Name, Len: len(members)}}, f.Dims...), Vars: []Var{number}, Attrs: p.membersGlobals(f.Attrs, len(members))}
	for _, other := range f.Vars {
		switch {
		case other.Name == v.Name:
			out.Vars = append(out.Vars, stacked)
		case !slices.Contains(companions, other.Name):
			out.Vars = append(out.Vars, other)
		}
	}
	return p.arrange(out)
}

// stack returns v with the numbers of all members, one after the other.
func (p *Product) stack(v Var, members [][]float32) (Var, error) {
	if len(members) == 0 {
		return Var{}, fmt.Errorf("%s has no members", p.id())
	}
	pack, _, err := newPacking(v, func(cell int) bool { return p.Flags[cell] == 0 })
	if err != nil {
		return Var{}, err
	}
	one := v.Raw
	v.Raw = make([]byte, 0, len(members)*len(one))
	for k, member := range members {
		if len(member) != len(p.Flags) {
			return Var{}, fmt.Errorf("member %d has %d cells, the product %d", k+1, len(member), len(p.Flags))
		}
		at := len(v.Raw)
		v.Raw = append(v.Raw, one...)
		for i, flag := range p.Flags {
			if flag&Interpolated == 0 {
				continue
			}
			if x := float64(member[i]); x-x != 0 {
				return Var{}, fmt.Errorf("member %d has no finite value at cell %d, which the product fills", k+1, i)
			}
			pack.put(v.Raw[at+i*pack.size:at+(i+1)*pack.size], float64(member[i]))
		}
	}
	return v, nil
}

// membersGlobals returns the global attributes of the file of members, from
// those of the product.
func (p *Product) membersGlobals(attrs []Attr, count int) []Attr {
	attrs = with(attrs, "title", text(attrs, "title")+", members")
	attrs = with(attrs, "summary", fmt.Sprintf("%d members of an ensemble about the Level-4 analysis %s: complete fields, each as likely to be the truth as any other. "+
		"Pixels that the sensor saw are the same in all of them; the gaps differ as the error of the analysis does, also from pixel to pixel.", count, p.id()))
	attrs = with(attrs, "comment", "The product of the same revision has the best single estimate, its uncertainty and the flags. "+inputSentence(p.Input())+p.modeSentence())
	attrs = with(attrs, "id", p.id()+"_members")
	return append(attrs, Attr{Name: "lacuna_product", Value: p.id()})
}

// membersAttrs returns the attribute by which a product names its members.
func (p *Product) membersAttrs() []Attr {
	if p.Members == nil {
		return nil
	}
	return []Attr{{Name: "lacuna_members", Value: fmt.Sprintf("%s sha256:%s %d", p.Members.Name, p.Members.SHA256, p.Members.Count)}}
}
