package impute

import (
	"fmt"
	"slices"
	"strings"

	"lacuna/pipeline/nn"
)

// covariatePlanes is the number of planes of a covariate: its values, 0 where they are
// missing, and where they are known.
const covariatePlanes = 2

// Channels returns the names of the covariates that the network sees, in the order of
// Inputs.Covariates.
func (d Design) Channels() []string {
	return append(namesOf(d.Covariates), namesOf(d.Standing)...)
}

func namesOf(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// With returns d with further covariates, and with further maps that stay. Those that it
// has already keep their place.
func (d Design) With(covariates, standing []string) Design {
	add := func(list string, names []string) string {
		all := namesOf(list)
		for _, name := range names {
			if !slices.Contains(d.Channels(), name) {
				all = append(all, name)
			}
		}
		return strings.Join(all, ",")
	}
	d.Covariates, d.Standing = add(d.Covariates, covariates), add(d.Standing, standing)
	return d
}

// Without returns d without covariates.
func (d Design) Without() Design {
	d.Covariates, d.Standing = "", ""
	return d
}

// covariatePlane returns the first plane of covariate k: they are the last ones.
func (d Design) covariatePlane(k int) int { return d.Without().Planes() + covariatePlanes*k }

// takes returns an error where the covariates of a window are not those of the network:
// by their number, for their order is the caller's.
func (d Design) takes(in *Inputs) error {
	if n, own := len(in.Covariates), len(d.Channels()); n != 0 && n != own {
		return fmt.Errorf("it has %d covariates, and the network was made for %d", n, own)
	}
	return nil
}

// encodeCovariate writes the values of a covariate and where they are known, over sea.
func encodeCovariate(m Image, at int, in *Inputs, given []float32) {
	if given == nil {
		return
	}
	values, known := m.Plane(at), m.Plane(at+1)
	for row := range in.Height {
		for col := range in.Width {
			src, dst := row*in.Width+col, row*m.Width+col
			if in.Sea[src] && finite(given[src]) {
				values[dst], known[dst] = given[src], 1
			}
		}
	}
}

// Widened returns the weights of a network of one design for another that sees further
// covariates: with zeros for their planes, so that the answers are the same. An error
// says that the designs differ in more than that.
func Widened(weights []float32, from, to Design) ([]float32, error) {
	if from == to {
		return weights, nil
	}
	for _, name := range from.Channels() {
		if !slices.Contains(to.Channels(), name) {
			return nil, fmt.Errorf("it sees the covariate %s, which the new one does not", name)
		}
	}
	if from.Without() != to.Without() {
		return nil, fmt.Errorf("it is another network, %+v, than is asked for, %+v", from, to)
	}
	old, err := nn.New(from.Network())
	if err != nil {
		return nil, err
	}
	wide, err := nn.New(to.Network())
	if err != nil {
		return nil, err
	}
	return nn.Widen(weights, old, wide, planesFrom(from, to, 0))
}

// WidenedMembers is Widened for the members of a network, which have the design own.
func WidenedMembers(weights []float32, own, from, to Design) ([]float32, error) {
	if from == to {
		return weights, nil
	}
	old, err := nn.New(MembersNetwork(from, own))
	if err != nil {
		return nil, err
	}
	wide, err := nn.New(MembersNetwork(to, own))
	if err != nil {
		return nil, err
	}
	return nn.Widen(weights, old, wide, planesFrom(from, to, memberPlanes))
}

// planesFrom returns for each input plane of a network of the design to the one of from
// that it was, -1 where it is new; the further planes behind those of the design are the
// same.
func planesFrom(from, to Design, further int) []int {
	out := slices.Repeat([]int{-1}, to.Planes()+further)
	for i := range to.Without().Planes() {
		out[i] = i
	}
	before := from.Channels()
	for k, name := range to.Channels() {
		if was := slices.Index(before, name); was >= 0 {
			for i := range covariatePlanes {
				out[to.covariatePlane(k)+i] = from.covariatePlane(was) + i
			}
		}
	}
	for i := range further {
		out[to.Planes()+i] = from.Planes() + i
	}
	return out
}
