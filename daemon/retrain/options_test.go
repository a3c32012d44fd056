package retrain

import (
	"errors"
	"strings"
	"testing"

	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/version"
)

// settingsOf returns the settings of a training on grids of a height.
func settingsOf(kind string, parent version.Parts, o Options, heights ...int) (version.Settings, error) {
	t := &Training{device: modelstore.Engine{Name: kind}, parent: parent, parentID: "v1", req: Request{Options: o}}
	for _, height := range heights {
		grid := field.Grid{Lat: make([]float64, height), Lon: make([]float64, 8)}
		t.req.Data = append(t.req.Data, Data{Series: samples.Series{Grid: grid}})
	}
	return t.settings()
}

func TestUnsetOptionsFollowTheEngineAndTheGrids(t *testing.T) {
	none := version.Budget{MembersSteps: -1, ReliabilitySteps: -1}
	processor, err := settingsOf(engine.ORT, nil, Options{Budget: none}, 64, 200)
	if err != nil || processor.Imputer.Design.Size != nn.Small || processor.Imputer.Side != 64 || !processor.Imputer.Negate || processor.Teachers != 0 {
		t.Errorf("on a processor: %+v, %v", processor.Imputer, err)
	}
	gpu, err := settingsOf("xla:cuda", nil, Options{Budget: none}, 64, 40)
	if err != nil || gpu.Imputer.Design.Size != nn.Base || gpu.Imputer.Side != 32 || gpu.Teachers < 2 {
		t.Errorf("on a GPU, with a small grid: %+v, %v", gpu.Imputer, err)
	}
	asked, err := settingsOf("xla:cuda", nil, Options{
		Size: nn.Tiny, Backbone: nn.BackboneViT, Strategy: "empirical", RefitPrior: true, Only: version.OnlyImputer,
		Budget: version.Budget{MembersSteps: -1, ReliabilitySteps: -1, Side: 16, Steps: 7},
	}, 64)
	design := asked.Imputer.Design
	if err != nil || design.Size != nn.Tiny || design.Backbone != nn.BackboneViT || asked.Imputer.Side != 16 || asked.Imputer.Steps != 7 ||
		asked.Strategy != "empirical" || !asked.RefitPrior || asked.Only != version.OnlyImputer {
		t.Errorf("options that were set: %+v, strategy %s, only %q, %v", asked.Imputer, asked.Strategy, asked.Only, err)
	}
	if s, err := settingsOf("xla:cuda", nil, Options{SpreadOnly: true, Budget: none}, 64); err != nil || !s.Imputer.SpreadOnly {
		t.Errorf("the spread only: %+v, %v", s.Imputer, err)
	}
}

func TestOptionsThatExcludeOneAnotherAreReported(t *testing.T) {
	v, err := infer.Untrained(impute.Design{Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	parent := version.Parts{version.PartImputer: v.Imputer}
	budget := version.Budget{MembersSteps: -1, ReliabilitySteps: -1}
	if s, err := settingsOf(engine.ORT, parent, Options{Budget: budget}, 64); err != nil || s.Imputer.Design.Size != nn.Tiny {
		t.Errorf("the network is %+v, %v, want that of the parent", s.Imputer.Design, err)
	}
	for want, o := range map[string]Options{
		"--from v1 is a tiny unet": {Size: nn.Large, Budget: budget},
		"leave --size and":         {Backbone: nn.BackboneViT, Budget: budget},
		"strategy is":              {Strategy: "luck", Budget: budget},
	} {
		_, err := settingsOf(engine.ORT, parent, o, 64)
		var wrong OptionError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want an OptionError with %q", err, want)
		}
	}
}
