package fill

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill/filltest"
	"lacuna/modelstore"
	"lacuna/modelstore/starters"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/samples"
)

// chlorophyllGranule returns a granule whose attributes name its quantity.
func chlorophyllGranule(standardName string) ingest.Granule {
	return ingest.Granule{
		Product: "chlorophyll", Transform: field.Transform{Log10: true, Floor: 1e-3},
		Source: ingest.Source{Variable: "CHL", Vars: []ingest.Var{{
			Name: "CHL", Attrs: []ingest.Attr{{Name: "standard_name", Value: standardName}},
		}}},
	}
}

func TestAutoIsTheChampionElseTheStarterElseInterpolation(t *testing.T) {
	device := modelDevice(t)
	store := modelstore.New(t.TempDir(), time.Now)
	var log bytes.Buffer
	models := NewModels(ModelParts{
		Store: store, Starters: []*modelstore.Version{filltest.Starter(t, "sst", "identity"), filltest.Starter(t, "CHL", "log10")},
		Log: slog.New(slog.NewTextHandler(&log, nil)), Open: func() (infer.Device, error) { return device, nil },
	})
	defer models.Close()
	days := 4
	asked := Case{
		Dataset: "chl", Fill: infer.Config{Method: infer.MethodAuto}, Granule: chlorophyllGranule("mass_concentration_of_chlorophyll_a_in_sea_water"),
		Scaling: func() (LocalScaling, error) {
			if days < samples.ScalingDays {
				return LocalScaling{}, samples.ErrFewDays
			}
			return LocalScaling{Scaling: samples.Scaling{Std: 1}, Days: days}, nil
		},
	}
	if got := models.Choose(asked); got.Fill.Method != "oi" || !strings.Contains(got.Why, "too few days") {
		t.Errorf("with four days it is %v, want oi because of the days", got)
	}
	days = 40
	got := models.Choose(asked)
	if got.Fill.Method != infer.MethodModel || got.Model == nil || got.Scaling == nil || !strings.HasPrefix(got.Model.Name(), "starter-chl-") {
		t.Fatalf("with forty days it is %v, want the starter of chlorophyll", got)
	}
	if text := got.String(); !strings.Contains(text, "starter model (starter-chl-") || !strings.Contains(text, "40 days") {
		t.Errorf("it is told as %q", text)
	}
	for _, step := range []time.Duration{time.Hour, 8 * 24 * time.Hour} {
		other := asked
		other.Dataset, other.Fill.Step = "another", step
		if got := models.Choose(other); got.Fill.Method != "oi" || !strings.Contains(got.Why, "learned from daily fields") {
			t.Errorf("a series of %v is filled by %v, want oi because of its step", step, got)
		}
	}
	log.Reset()
	stopping := asked
	stopping.Dataset, stopping.Scaling = "stopping", func() (LocalScaling, error) { return LocalScaling{}, context.Canceled }
	models.Choose(stopping)
	if _, chosen := models.Chosen("stopping"); chosen || log.Len() > 0 {
		t.Errorf("a service that stops chose a filler:\n%s", log.String())
	}
	if again := models.Choose(asked); again.Model != got.Model || strings.Contains(log.String(), "filler chosen") {
		t.Errorf("the same starter was loaded or told twice:\n%s", log.String())
	}
	id := filltest.Promote(t, store, filltest.UntrainedFiles(t, 1))
	if got := models.Choose(asked); got.Model == nil || got.Model.Name() != id || got.Scaling != nil || got.Why != "" {
		t.Errorf("with a champion it is %v, want %s", got, id)
	}
	if got, ok := models.Chosen("chl"); !ok || got.Model.Name() != id {
		t.Errorf("the last choice is %v", got)
	}
}

func TestAStarterIsUsedForItsQuantityOnly(t *testing.T) {
	ours := []*modelstore.Version{filltest.Starter(t, "CHL", "log10")}
	plain := chlorophyllGranule("mass_concentration_of_chlorophyll_in_sea_water")
	plain.Transform = field.Transform{}
	unknown := ingest.Granule{Source: ingest.Source{Variable: "x"}}
	for name, tt := range map[string]struct {
		granule ingest.Granule
		want    string // part of the reason; empty: the starter is used
	}{
		"another name of chlorophyll": {granule: chlorophyllGranule("mass_concentration_of_chlorophyll_in_sea_water")},
		"no name, but the product":    {granule: chlorophyllGranule("")},
		"a plankton group of the same product": {
			granule: chlorophyllGranule("mass_concentration_of_nanophytoplankton_expressed_as_chlorophyll_in_sea_water"), want: "no starter for",
		},
		"not in log10":    {granule: plain, want: "space identity"},
		"nothing is said": {granule: unknown, want: "is not known"},
	} {
		v, why := StarterFor(ours, tt.granule)
		if (v != nil) != (tt.want == "") || !strings.Contains(why, tt.want) {
			t.Errorf("%s: %v, %q; want %q", name, v, why, tt.want)
		}
	}
}

func TestWithoutAnEngineAutoInterpolatesAndSaysWhy(t *testing.T) {
	tries := 0
	models := NewModels(ModelParts{
		Starters: []*modelstore.Version{filltest.Starter(t, "CHL", "log10")}, Log: slog.New(slog.DiscardHandler),
		Open: func() (infer.Device, error) { tries++; return infer.Device{}, errors.New("no libonnxruntime") },
	})
	asked := Case{
		Dataset: "chl", Fill: infer.Config{Method: infer.MethodAuto}, Granule: chlorophyllGranule(""),
		Scaling: func() (LocalScaling, error) { return LocalScaling{Days: 20}, nil },
	}
	for range 2 {
		if got := models.Choose(asked); got.Fill.Method != "oi" || !strings.Contains(got.Why, "no libonnxruntime") {
			t.Errorf("it is %v, want oi because of the engine", got)
		}
	}
	if tries != 1 {
		t.Errorf("the engine was tried %d times", tries)
	}
}

func TestEveryStarterOfTheProgramFillsSomething(t *testing.T) {
	all, err := starters.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if len(namesOf(v.Card)) == 0 {
			t.Errorf("%s: nothing is known of its variable %q", v.ID, v.Card.Variable)
		}
	}
}
