package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/version"
)

func modelDevice(t *testing.T) infer.Device {
	t.Helper()
	return infer.Device{Backend: enginetest.Open(t)}
}

// untrainedFiles are the files of a version of random weights.
func untrainedFiles(t *testing.T, seed uint64) map[string][]byte {
	t.Helper()
	v, err := infer.Untrained(impute.Design{Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true}, seed)
	if err != nil {
		t.Fatal(err)
	}
	scaling, err := json.Marshal(version.Scaling{Lat: []float64{40, 41}, Lon: []float64{10, 11}, Std: 1, Mean: make([]float32, 4)})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		modelstore.ImputerFile: v.Imputer, modelstore.MembersFile: v.Members, modelstore.ScalingFile: scaling,
		modelstore.CalibrationFile: []byte(`{"edges_cells":[2],"factors":[[1,2]],"cases":9,"members":{"edges_cells":[],"factors":[[3]],"cases":9}}`),
	}
}

// promote writes a version and makes it champion.
func promote(t *testing.T, store *modelstore.Store, files map[string][]byte) string {
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

func TestAPromotionIsSeenAtTheNextGranule(t *testing.T) {
	device := modelDevice(t)
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := modelstore.New(t.TempDir(), func() time.Time { clock = clock.Add(time.Second); return clock })
	models := NewModels(ModelParts{Store: store, Log: slog.New(slog.DiscardHandler), Open: func() (infer.Device, error) { return device, nil }})
	defer models.Close()
	if _, err := models.Champion("chl"); !errors.Is(err, modelstore.ErrNoChampion) {
		t.Fatalf("error is %v, want that there is no champion", err)
	}
	asked := Case{Dataset: "chl", Fill: infer.DefaultConfig()}
	asked.Fill.Method = infer.MethodModel
	if got := models.Choose(asked); got.Fill.Method != "oi" || got.Model != nil {
		t.Errorf("without a champion it is %v, want oi", got)
	}
	if got := (*Models)(nil).Choose(asked); got.Fill.Method != "oi" || got.Model != nil {
		t.Errorf("without a store it is %v, want oi", got)
	}
	first := promote(t, store, untrainedFiles(t, 1))
	if got := models.Choose(asked); got.Fill.Method != infer.MethodModel || got.Model == nil || got.Why != "" {
		t.Errorf("with a champion it is %v", got)
	}
	model, err := models.Champion("chl")
	if err != nil || model.Name() != first || !model.Members() {
		t.Fatalf("champion is %v, %v, want %s with members", model, err, first)
	}
	if again, err := models.Champion("chl"); err != nil || again != model {
		t.Errorf("the same champion was loaded twice: %v", err)
	}
	second := promote(t, store, untrainedFiles(t, 2))
	model, err = models.Champion("chl")
	if err != nil || model.Name() != second {
		t.Fatalf("champion is %v, %v, want %s", model, err, second)
	}
	// A version whose files are sound but whose network cannot be used.
	broken := untrainedFiles(t, 3)
	broken[modelstore.MembersFile] = untrainedFiles(t, 4)[modelstore.MembersFile]
	promote(t, store, broken)
	if served, err := models.Champion("chl"); err != nil || served != model {
		t.Errorf("serving %v, %v: want the last that loaded", served, err)
	}
}

func TestAModelFileTakesAlongWhatLiesBesideIt(t *testing.T) {
	device := modelDevice(t)
	dir := t.TempDir()
	files := untrainedFiles(t, 1)
	write := func(names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(modelstore.ImputerFile)
	path := filepath.Join(dir, modelstore.ImputerFile)
	model, err := LoadModelFile(path, device)
	if err != nil || model.Members() || model.Name() != "imputer" {
		t.Fatalf("model is %+v, %v, want an imputer alone", model, err)
	}
	model.Close()
	write(modelstore.MembersFile, modelstore.CalibrationFile, modelstore.ScalingFile)
	model, err = LoadModelFile(path, device)
	if err != nil || !model.Members() {
		t.Fatalf("model is %+v, %v, want one with members", model, err)
	}
	model.Close()
	files[modelstore.CalibrationFile] = []byte(`{"edges_cells":[2],"factors":[[1,-2]]}`)
	write(modelstore.CalibrationFile)
	if _, err := LoadModelFile(path, device); err == nil || !strings.Contains(err.Error(), modelstore.CalibrationFile) {
		t.Errorf("error is %v, want one that names %s", err, modelstore.CalibrationFile)
	}
}

func TestAVersionWithoutImputerSaysWhatToDo(t *testing.T) {
	store := modelstore.New(t.TempDir(), time.Now)
	files := untrainedFiles(t, 1)
	delete(files, modelstore.ImputerFile)
	v, err := store.Load(promote(t, store, files))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadModel(v, infer.Device{}); err == nil || !strings.Contains(err.Error(), "train an imputer") {
		t.Errorf("error is %v, want what to do", err)
	}
}
