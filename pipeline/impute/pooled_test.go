package impute

import (
	"reflect"
	"testing"

	"lacuna/pipeline/nn"
)

// The mean is asked for once and must attend to every place of a window, while members, new
// or read from a file, may take places together.
func TestOnlyTheNetworkOfMembersPools(t *testing.T) {
	design := Design{Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true}
	settings := map[string]int{"side": 16}
	plain := func(c nn.Config) (nn.Network, []float32) {
		n, err := nn.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return n, n.Layout().Init(1)
	}
	exact, weights := plain(design.Network())
	model, err := NewModel(nil, design, settings, weights)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(model.loaded.network, exact) {
		t.Error("the network of the mean is not the one of its design")
	}
	exact, weights = plain(MembersNetwork(design, design))
	made, err := NewMembers(model, design, settings, weights)
	if err != nil {
		t.Fatal(err)
	}
	file, err := made.Save(16)
	if err != nil {
		t.Fatal(err)
	}
	read, err := LoadMembers(file, model)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Members{"made": made, "read": read} {
		if !reflect.DeepEqual(m.loaded.network, nn.Pooled(exact, memberPlaces)) {
			t.Errorf("%s: the network of members does not pool", name)
		}
	}
}
