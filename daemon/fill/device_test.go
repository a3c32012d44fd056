package fill

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill/filltest"
	"lacuna/modelstore"
	"lacuna/pipeline/infer"
)

// card is a GPU that can be taken away; what computes is the processor.
type card struct {
	device infer.Device
	away   bool
	opened int
}

func (c *card) open() (infer.Device, error) {
	c.opened++
	if c.away {
		return c.standIn(errors.New("no device file"))
	}
	d := c.device
	d.GPU, d.Try = true, func() error {
		if c.away {
			return errors.New("fallen off the bus")
		}
		return nil
	}
	return d, nil
}

func (c *card) standIn(lost error) (infer.Device, error) {
	d := c.device
	d.Away = lost.Error()
	return d, nil
}

func TestAModelGoesOnWithoutItsGPUAndBack(t *testing.T) {
	gpu := &card{device: modelDevice(t)}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := modelstore.New(t.TempDir(), time.Now)
	filltest.Promote(t, store, filltest.UntrainedFiles(t, 1))
	models := NewModels(ModelParts{
		Store: store, Log: slog.New(slog.DiscardHandler), Open: gpu.open, StandIn: gpu.standIn, Now: func() time.Time { return now },
	})
	defer models.Close()
	champion := func() *infer.Model {
		t.Helper()
		model, err := models.Champion("chl")
		if err != nil {
			t.Fatal(err)
		}
		return model
	}
	onGPU := champion()
	if models.Lost() || models.Away() != "" || champion() != onGPU {
		t.Fatal("a model failed on a GPU that is there, and was taken off it")
	}
	gpu.away = true
	if champion() != onGPU {
		t.Fatal("the GPU was left before anything failed on it")
	}
	if !models.Lost() || !strings.Contains(models.Away(), "fallen off the bus") {
		t.Fatalf("the GPU is gone, and the models say %q", models.Away())
	}
	onProcessor := champion()
	if onProcessor == onGPU {
		t.Fatal("the model is still that of the lost GPU")
	}
	if models.Lost() {
		t.Error("a model that fails on the processor is worth no other try")
	}
	opened := gpu.opened
	gpu.away = false
	if champion() != onProcessor || gpu.opened != opened {
		t.Error("the GPU is looked for at every granule")
	}
	now = now.Add(lookAgain)
	if back := champion(); back == onProcessor || models.Away() != "" {
		t.Errorf("the GPU is back, and the models say %q", models.Away())
	}
}

func TestAGPUThatIsAwayAtTheStartIsTakenWhenItComes(t *testing.T) {
	gpu := &card{device: modelDevice(t), away: true}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := modelstore.New(t.TempDir(), time.Now)
	filltest.Promote(t, store, filltest.UntrainedFiles(t, 1))
	models := NewModels(ModelParts{
		Store: store, Log: slog.New(slog.DiscardHandler), Open: gpu.open, StandIn: gpu.standIn, Now: func() time.Time { return now },
	})
	defer models.Close()
	if _, err := models.Champion("chl"); err != nil || models.Away() == "" {
		t.Fatalf("%v; the models say %q", err, models.Away())
	}
	for range 3 { // away for half an hour
		now = now.Add(lookAgain)
		if _, err := models.Champion("chl"); err != nil || models.Away() == "" {
			t.Fatalf("%v; the models say %q", err, models.Away())
		}
	}
	gpu.away = false
	now = now.Add(lookAgain)
	if _, err := models.Champion("chl"); err != nil || models.Away() != "" {
		t.Errorf("%v; the models say %q", err, models.Away())
	}
}
