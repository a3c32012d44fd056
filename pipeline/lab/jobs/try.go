package jobs

import (
	"encoding/json"
	"slices"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/partition"
)

// trialSide is the side of windows of a trial, in cells.
const trialSide = 32

// shrink makes a job so small that it takes seconds, and leaves its data and its
// rows: what fails on the way fails before it costs time on a GPU.
func (j *job) shrink() {
	s := j.settings.With(tables.Budget{Steps: 3, PriorSteps: 4, Batch: 2, Side: trialSide, Seeds: 1, Overlays: 40})
	s.Train.Design.Size, s.Prior.Model.Size = nn.Tiny, nn.Tiny
	s.Prior.Side, s.Prior.Stride = trialSide, trialSide/2
	s.Prior.Batch, s.Prior.EvaluateMasks, s.Prior.CalibrateMasks, s.Prior.Sampling.Steps, s.Prior.Sampling.Batch = 4, 4, 4, 2, 4
	s.Pool = partition.PoolConfig{Size: 8, Uses: 2, Batch: 4}
	s.Drawing.Members, s.Drawing.ODE = 2, impute.ODE{Steps: 2, Jumps: 1}
	s.DINDiffDraws, s.DINDiffSteps, s.MaskPatches, s.MaskDraws = 2, 2, 1, 2
	s.QueryPatches, s.QueryDraws = 2, 2
	s.Members = learn.MembersConfig(s.Train)
	j.settings, j.Size, j.Side = s, nn.Tiny, trialSide
	j.SpeedSteps = min(j.SpeedSteps, 5)
	rows := slices.Clone(j.table.Rows) // those of a table are shared
	for i := range rows {
		c := &rows[i].Sampler.Config
		rows[i].Network.Recipe = shortened(rows[i].Network.Recipe)
		rows[i].Network.Distil = shortened(rows[i].Network.Distil)
		c.Members, c.Draws, c.Steps, c.Jumps, c.Every, c.Length = min(c.Members, 2), min(c.Draws, 2), min(c.Steps, 3), min(c.Jumps, 2), min(c.Every, 2), min(c.Length, 1)
	}
	j.table.Rows = rows
}

// shortened returns settings of a training with the steps and batch of a trial.
func shortened(recipe json.RawMessage) json.RawMessage {
	if len(recipe) == 0 {
		return recipe
	}
	var settings map[string]any
	if json.Unmarshal(recipe, &settings) != nil {
		return recipe // the row says what is wrong with it
	}
	settings["steps"], settings["batch"] = 3, 2
	delete(settings, "side")
	out, err := json.Marshal(settings)
	if err != nil {
		return recipe
	}
	return out
}
