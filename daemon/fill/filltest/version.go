// Package filltest makes versions of models for tests, without training one.
package filltest

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/parts"

	"lacuna/modelstore"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
)

// UntrainedFiles are the files of a version of random weights.
func UntrainedFiles(t *testing.T, seed uint64) map[string][]byte {
	t.Helper()
	v, err := infer.Untrained(impute.Design{Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true}, seed)
	if err != nil {
		t.Fatal(err)
	}
	scaling, err := json.Marshal(parts.Scaling{Lat: []float64{40, 41}, Lon: []float64{10, 11}, Std: 1, Mean: make([]float32, 4)})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		modelstore.ImputerFile: v.Imputer, modelstore.MembersFile: v.Members, modelstore.ScalingFile: scaling,
		modelstore.CalibrationFile: []byte(`{"edges_cells":[2],"factors":[[1,2]],"cases":9,"members":{"edges_cells":[],"factors":[[3]],"cases":9}}`),
	}
}

// Promote writes a version and makes it champion.
func Promote(t *testing.T, store *modelstore.Store, files map[string][]byte) string {
	t.Helper()
	readers := map[string]io.Reader{}
	for name, data := range files {
		readers[name] = bytes.NewReader(data)
	}
	v, err := store.Write(t.Context(), modelstore.Card{Kind: "trained", Dataset: "chl", Variable: "CHL", Lacuna: "test"}, readers)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Promote(t.Context(), modelstore.Change{Version: v.ID, By: "test", Why: []string{"a test"}}); err != nil {
		t.Fatal(err)
	}
	return v.ID
}

// Starter makes a starter of random weights for a quantity.
func Starter(t *testing.T, variable, transform string) *modelstore.Version {
	t.Helper()
	files := UntrainedFiles(t, 5)
	delete(files, modelstore.ScalingFile)
	readers := map[string]io.Reader{}
	for name, data := range files {
		readers[name] = bytes.NewReader(data)
	}
	v, err := modelstore.New(t.TempDir(), time.Now).Write(t.Context(),
		modelstore.Card{Dataset: "starter-" + strings.ToLower(variable), Variable: variable, Transform: transform}, readers)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
