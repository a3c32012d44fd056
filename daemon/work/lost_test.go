package work

import (
	"log/slog"
	"testing"

	"lacuna/daemon/fill"
	"lacuna/daemon/fill/filltest"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
)

// onLostCard chooses the starter on a device that is gone, and once that was told the
// same starter on another one.
type onLostCard struct {
	*fill.Models
	gone  *infer.Model
	asked int
	lost  bool
}

func (m *onLostCard) Choose(c fill.Case) fill.Choice {
	m.asked++
	choice := m.Models.Choose(c)
	choice.Trust = nil // followed all the way, so that it is asked for its answer
	if !m.lost {
		choice.Model = m.gone
	}
	return choice
}

func (m *onLostCard) Lost() bool {
	before := m.lost
	m.lost = true
	return !before
}

func TestAGranuleIsFilledByItsModelAfterTheGPUIsLost(t *testing.T) {
	w, days, sea := starterWorker(t, 14)
	last := len(days) - 1
	job := fill.Job{Dataset: "sea", Granule: days[last], History: days[:last], Sea: sea, Fill: w.set.Fill}
	models := &onLostCard{Models: w.Models.(*fill.Models)}
	w.Models = models
	card, err := engine.Open(engine.ORT, engine.Config{Threads: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	gone, err := fill.LoadModel(filltest.Starter(t, "CHL", "log10"), infer.Device{Backend: card})
	if err != nil {
		t.Fatal(err)
	}
	card.Finalize() // whoever runs its programs gets an error
	models.gone = gone
	outcome, done, err := w.analyse(t.Context(), job)
	if err != nil || done.Model == nil || done.Model == gone || outcome.Product.Model == "oi" {
		t.Errorf("%v; by the lost model: %v; the product says %q", err, done.Model == gone, outcome.Product.Model)
	}
	if models.asked != 2 {
		t.Errorf("the method was chosen %d times, want once before and once after the loss", models.asked)
	}
}
