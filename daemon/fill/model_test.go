package fill

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill/filltest"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/infer"
)

func modelDevice(t *testing.T) infer.Device {
	t.Helper()
	return infer.Device{Backend: enginetest.Open(t)}
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
	first := filltest.Promote(t, store, filltest.UntrainedFiles(t, 1))
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
	second := filltest.Promote(t, store, filltest.UntrainedFiles(t, 2))
	model, err = models.Champion("chl")
	if err != nil || model.Name() != second {
		t.Fatalf("champion is %v, %v, want %s", model, err, second)
	}
	// A version whose files are sound but whose network cannot be used.
	broken := filltest.UntrainedFiles(t, 3)
	broken[modelstore.MembersFile] = filltest.UntrainedFiles(t, 4)[modelstore.MembersFile]
	filltest.Promote(t, store, broken)
	if served, err := models.Champion("chl"); err != nil || served != model {
		t.Errorf("serving %v, %v: want the last that loaded", served, err)
	}
}

func TestAModelFileTakesAlongWhatLiesBesideIt(t *testing.T) {
	device := modelDevice(t)
	dir := t.TempDir()
	files := filltest.UntrainedFiles(t, 1)
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
	files := filltest.UntrainedFiles(t, 1)
	delete(files, modelstore.ImputerFile)
	v, err := store.Load(filltest.Promote(t, store, files))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadModel(v, infer.Device{}); err == nil || !strings.Contains(err.Error(), "train an imputer") {
		t.Errorf("error is %v, want what to do", err)
	}
}
