package masks

import (
	"testing"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples/samplestest"
)

func TestExhibitsShowWhatIsDrawn(t *testing.T) {
	m := roughModel(t)
	patches := samplestest.Cloudy(2, 16)
	cfg := prior.DefaultGuidance()
	cfg.SampleConfig = sampling()
	shown, err := Exhibits(t.Context(), m, patches, cfg, noise.New(1, "sheet"))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range shown {
		for c, o := range patches[i].Observed() {
			if e.Observed[c] != o || e.Context[c] != (o && e.Guided[c]) || e.Query[c] != (o && !e.Guided[c]) || e.Anchor[c] && !o {
				t.Fatalf("row %d, cell %d does not fit together", i, c)
			}
		}
	}
}
