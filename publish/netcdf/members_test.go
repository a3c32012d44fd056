package netcdf

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/internal/cdl"
	"lacuna/publish/netcdf/compliance"
)

// membersOf invents three members of a product: what they have where the product
// is not filled must not be written.
func membersOf(p Product) [][]float32 {
	members := make([][]float32, 3)
	for k := range members {
		members[k] = slices.Clone(p.Value)
		for i := range members[k] {
			members[k][i] *= 1 + 0.02*float32(k+1)
		}
	}
	return members
}

func TestMembersHaveTheObservationsAndTheirOwnGaps(t *testing.T) {
	t.Parallel()
	for name, product := range fixtures {
		p := product()
		path := filepath.Join(t.TempDir(), "members.nc")
		if err := WriteMembers(path, p, membersOf(p)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := readBack(t, path)
		whole := mustFile(t, p)
		v, _ := whole.variable(p.Variable)
		size := cdl.SizeOf(v.Type)
		for k, member := range membersOf(p) {
			q := p
			q.Value = member
			alone := mustFile(t, q)
			want, _ := alone.variable(p.Variable)
			if got := got[p.Variable][k*len(want.Raw) : (k+1)*len(want.Raw)]; !bytes.Equal(got, want.Raw) {
				t.Errorf("%s: member %d is not stored as a product with its values would be", name, k+1)
			}
		}
		first, second := got[p.Variable][:len(v.Raw)], got[p.Variable][len(v.Raw):2*len(v.Raw)]
		for i, flag := range p.Flags {
			same := bytes.Equal(first[i*size:(i+1)*size], second[i*size:(i+1)*size])
			if filled := flag&Interpolated != 0; same == filled {
				t.Errorf("%s: cell %d with flags %b is the same in two members: %v", name, i, flag, same)
			}
		}
		if want := raw("int", 1, 2, 3); !bytes.Equal(got["realization"], want) || len(got) != len(whole.Vars)-len(strings.Fields(text(v.Attrs, "ancillary_variables")))+1 {
			t.Errorf("%s: the file has %v, want the coordinates of the product, the variable and realization", name, slices.Sorted(maps.Keys(got)))
		}
	}
}

func TestMembersOfEveryLayoutPassAnIndependentChecker(t *testing.T) {
	if testing.Short() {
		t.Skip("what Python reads; leave -short out to run it")
	}
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	for i, name := range slices.Sorted(maps.Keys(fixtures)) {
		path, p := filepath.Join(dir, fmt.Sprintf("%d_%s.nc", i, strings.ReplaceAll(name, " ", "_"))), fixtures[name]()
		if err := WriteMembers(path, p, membersOf(p)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		paths = append(paths, path)
	}
	compliance.Check(t, paths...)
}

// A product with other members has another hash, so that one revision cannot
// have two sets of them.
func TestAProductNamesItsMembers(t *testing.T) {
	t.Parallel()
	p := blackSea()
	f, err := p.MembersFile(membersOf(p))
	if err != nil {
		t.Fatal(err)
	}
	if id := text(mustFile(t, p).Attrs, "id"); text(f.Attrs, "lacuna_product") != id || text(f.Attrs, "id") != id+"_members" {
		t.Errorf("the members are %q of %q, the product is %q", text(f.Attrs, "id"), text(f.Attrs, "lacuna_product"), id)
	}
	p.Members = &MembersFile{Name: "x_members.nc", SHA256: "abc", Count: 3}
	if got := text(mustFile(t, p).Attrs, "lacuna_members"); got != "x_members.nc sha256:abc 3" {
		t.Errorf("lacuna_members is %q", got)
	}
	again, err := p.MembersFile(membersOf(p))
	if err != nil || text(again.Attrs, "lacuna_members") != "" {
		t.Errorf("the members name themselves: %v", err)
	}
}

func TestMembersThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	p := blackSea()
	hole := membersOf(p)
	hole[1][slices.Index(p.Flags, Interpolated)] = float32(math.NaN())
	for want, members := range map[string][][]float32{
		"no members":         nil,
		"cells, the product": {{1, 2}},
		"no finite value":    hole,
	} {
		if _, err := p.MembersFile(members); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
