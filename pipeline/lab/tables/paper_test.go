package tables

import (
	"encoding/json"
	"slices"
	"testing"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
)

// partitionsOf returns how a strategy splits a few training patches of a run.
func partitionsOf(t *testing.T, r *run, by partition.Strategy) []partition.Parts {
	t.Helper()
	parts, err := by.Partition(t.Context(), r.patches(4), noise.New(7, "partitions of a test"))
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func sameParts(a, b []partition.Parts) bool {
	return slices.EqualFunc(a, b, func(a, b partition.Parts) bool {
		return slices.Equal(a.Context, b.Context) && slices.Equal(a.Query, b.Query)
	})
}

// The row called paper is what the tables say of the paper. Its guidance must be
// the printed one down to the last cell of a partition, on whatever data.
func TestTheRowOfThePaperIsGuidedAsPrinted(t *testing.T) {
	r, err := begin(tiny(t, free(t, impute.Single, "paper")), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	printed := prior.GuideConfig{
		SampleConfig: prior.SampleConfig{Steps: 20, Spacing: prior.Even, Order: prior.FirstOrder, Batch: r.s.Pool.Batch},
		Anchor:       prior.AnchorPixel, Rho: 0.8, Weight: 140,
	}
	network := r.job.Table.Rows[0].Network
	got, err := r.guidance(t.Context(), network)
	if err != nil || got != printed {
		t.Fatalf("guided by %+v, want %+v; %v", got, printed, err)
	}
	by, err := r.partitioner(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}
	drawn := partitionsOf(t, r, by)
	for _, c := range []struct {
		weight float64
		same   bool
	}{{printed.Weight, true}, {972, false}, {0, false}} {
		other := printed
		other.Weight = c.weight
		want, err := prior.NewGuided(r.prior, other)
		if err != nil {
			t.Fatal(err)
		}
		if same := sameParts(drawn, partitionsOf(t, r, want)); same != c.same {
			t.Errorf("partitions of the row and those of weight %g are the same: %v", c.weight, same)
		}
	}
}

// Every comparison of the paper has a row of its own method, and none of another
// by that name.
func TestThePaperStandsInEveryTableOfItsOwn(t *testing.T) {
	for _, name := range []string{"main", "strategies", "samplers", "contexts", "backbones", "ratio", "sensitivity", "anchors"} {
		table, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(table.Rows, func(r Row) bool { return r.Name == "paper" })
		if at < 0 {
			t.Errorf("table %s has no row of the paper's own method", name)
			continue
		}
		if r := table.Rows[at]; r.By != OneStep || r.Network.Preset != presetPaper || r.Network.Backbone != "" || *r.Network.Guidance != *published().Network.Guidance {
			t.Errorf("table %s: the paper's method is %+v", name, r)
		}
	}
}

// A recipe of ours must not find its way into the network of the paper: whoever
// adds a setting to trainings decides here whether the paper has it.
func TestTheNetworkOfThePaperIsTrainedAsPrinted(t *testing.T) {
	budget := Default(nn.Small, false).Train
	data, err := json.Marshal(published().Network.config(budget))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	design, _ := got["design"].(map[string]any)
	delete(got, "design")
	for _, c := range []struct {
		of       map[string]any
		expected map[string]any // what the paper has; other settings are off
	}{
		{got, map[string]any{"loss_on": string(learn.OnQuery), "clean": 0.5}},
		{design, map[string]any{"backbone": nn.BackboneUNet, "size": nn.Small}},
	} {
		for name, value := range c.of {
			want, printed := c.expected[name]
			switch {
			case slices.Contains([]string{"side", "steps", "batch", "learning_rate", "warmup_steps", "ema_decay", "clip_norm", "seed"}, name): // the budget
			case printed && value != want:
				t.Errorf("%s is %v, want %v", name, value, want)
			case !printed && !off(value):
				t.Errorf("%s is %v, and the paper has no such thing", name, value)
			}
		}
	}
}

// off reports whether a setting is not used.
func off(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, part := range v {
			if !off(part) {
				return false
			}
		}
		return true
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return v == ""
	}
	return value == nil
}
