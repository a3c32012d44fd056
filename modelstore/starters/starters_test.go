package starters

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"lacuna/modelstore"
)

// maxBytes of a starter: it is in the repository and in every program.
const maxBytes = 10 << 20

func TestEveryStarterCanFillAndIsSmall(t *testing.T) {
	all, err := List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Skip("no starter has been trained: make models")
	}
	fills := map[string]string{}
	for _, v := range all {
		if v.Card.Variable == "" {
			t.Errorf("%s does not name its quantity", v.ID)
		}
		if other := fills[v.Card.Variable]; other != "" {
			t.Errorf("%s and %s both fill %s: remove the older one", other, v.ID, v.Card.Variable)
		}
		fills[v.Card.Variable] = v.ID
		if !slices.Contains([]string{"log10", "identity"}, v.Card.Transform) {
			t.Errorf("%s: its transform is %q", v.ID, v.Card.Transform)
		}
		if v.Bytes() > maxBytes {
			t.Errorf("%s has %d bytes, want at most %d", v.ID, v.Bytes(), maxBytes)
		}
		if data, err := v.ReadFile(modelstore.ImputerFile); err != nil || len(data) == 0 {
			t.Errorf("%s cannot fill: %v", v.ID, err)
		}
	}
}

func TestADamagedStarterIsNamed(t *testing.T) {
	_, err := list(t.Context(), fstest.MapFS{"versions/sst.tar": {Data: []byte("not a tar file")}})
	if err == nil || !strings.Contains(err.Error(), "sst.tar") {
		t.Errorf("list = %v, want an error that names the file", err)
	}
}
