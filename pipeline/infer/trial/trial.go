// Package trial measures how fast a machine fills a basin.
//
// Run simulates a sea, fills one field of it by DINEOF, by optimal
// interpolation and by networks of random weights, which cost as much as trained
// ones, and reports the time of each stage. Grow does so for seas of ascending
// size. The figures describe the machine under its present load, not the skill
// of a method.
//
// Package trial opens no engine, prints nothing but its tables, and knows
// nothing of files.
package trial

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/simulate"
)

// Config holds the settings of a trial.
type Config struct {
	Product       string // a product of package simulate
	Height, Width int    // cells; both zero: a size fit for a demo
	Days          int    // days before the field that are used
	Size          string // size of the networks
	Tiers         []infer.Tier
	Network       infer.Network // its tier is ignored
}

// DefaultConfig returns a trial of some minutes on two cores.
func DefaultConfig() Config {
	return Config{Product: "blk-chl", Days: 10, Size: nn.Small, Tiers: []infer.Tier{infer.Fast, infer.Standard}}
}

// Row is the measurement of one method.
type Row struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// Seconds by stage, of networks only.
	Analysis float64 `json:"analysis_seconds,omitempty"`
	Look     float64 `json:"look_seconds,omitempty"`
	Members  float64 `json:"members_seconds,omitempty"`
	Host     float64 `json:"host_seconds,omitempty"`    // everything else: cutting, blending, composing
	Network  float64 `json:"network_percent,omitempty"` // share of the networks in all
	Windows  int     `json:"windows,omitempty"`
}

// Report holds the measurements of a trial.
type Report struct {
	Sea     string  `json:"sea"`
	Cells   int     `json:"cells"`
	Missing float64 `json:"missing_percent"` // share of gaps in the sea
	Days    int     `json:"days"`
	Network string  `json:"network"`
	Engine  string  `json:"engine"` // set by the caller, as is the machine
	Rows    []Row   `json:"rows"`
	PeakMB  int64   `json:"peak_memory_mb,omitempty"` // likewise
}

// Run makes the trial. began, if not nil, is called with the name of each part
// and returns the progress callback of that part.
func Run(ctx context.Context, cfg Config, d infer.Device, began func(part string) func(done, total int)) (Report, error) {
	if began == nil {
		began = func(string) func(int, int) { return func(int, int) {} }
	}
	scene, report, err := cfg.scene(began("simulating"))
	if err != nil {
		return report, err
	}
	model, err := cfg.model(d)
	if err != nil {
		return report, err
	}
	defer model.Close()
	report.Network = fmt.Sprintf("%s, %d weights", model.Name(), model.Weights())
	row, err := expand(scene, began("DINEOF"))
	if err != nil {
		return report, fmt.Errorf("DINEOF: %w", err)
	}
	report.Rows = append(report.Rows, row)
	for _, a := range cfg.attempts(model, d.GPU) {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		row, err := a.measure(ctx, scene, began(a.name))
		if err != nil {
			return report, fmt.Errorf("%s: %w", a.name, err)
		}
		report.Rows = append(report.Rows, row)
	}
	return report, nil
}

// model returns networks of random weights.
func (c Config) model(d infer.Device) (*infer.Model, error) {
	v, err := infer.Untrained(infer.UntrainedDesign(c.Size), 1)
	if err != nil {
		return nil, err
	}
	return infer.Load(v, d)
}

// scene simulates a field and the days before it.
func (c Config) scene(progress func(done, total int)) (infer.Scene, Report, error) {
	m := mosaic{height: c.Height, width: c.Width}
	world, err := simulate.New(simulate.Config{
		Product: c.Product, Height: min(c.Height, tileCells), Width: min(c.Width, tileCells), Days: c.Days + 1, Seed: 1,
	})
	if err != nil {
		return infer.Scene{}, Report{}, err
	}
	m.tile = world.Grid()
	grid := m.grid()
	s := infer.Scene{Sea: lay(m, world.Sea())}
	if world.Product().Log {
		s.Transform = field.Transform{Log10: true, Floor: 1e-3}
	}
	for day := range c.Days + 1 {
		seen := world.Day(day).Seen
		seen.Grid, seen.Values = grid, lay(m, seen.Values)
		if day < c.Days {
			s.History = append(s.History, seen)
		} else {
			s.Frames = []field.Field{seen}
		}
		progress(day+1, c.Days+1)
	}
	s.Frames[0].Sea = s.Sea
	_, _, share := s.Frames[0].Coverage()
	return s, Report{
		Sea: fmt.Sprintf("%s, %v", c.Product, grid), Cells: grid.Len(), Missing: 100 * (1 - share), Days: c.Days,
	}, nil
}

type attempt struct {
	name  string
	cfg   infer.Config
	model *infer.Model
}

// attempts returns the methods to measure. A GPU compiles for half a minute, so
// there members are drawn once before the measurement; a processor takes a
// second.
func (c Config) attempts(model *infer.Model, gpu bool) []attempt {
	plain := infer.DefaultConfig()
	plain.PastDays = max(c.Days, 1)
	plain.OI = infer.OI{LengthKM: 100, Days: 5, Nugget: 0.2} // given scales are not tuned
	tier := func(t infer.Tier) infer.Config {
		cfg := plain
		cfg.Method, cfg.Network, cfg.Network.Tier = infer.MethodModel, c.Network, t
		return cfg
	}
	all := []attempt{{"optimal interpolation", plain, nil}, {"network, compiled anew", tier(infer.Fast), model}}
	if gpu && slices.ContainsFunc(c.Tiers, func(t infer.Tier) bool { return t != infer.Fast }) {
		all = append(all, attempt{"members, compiled anew", tier(infer.Standard), model})
	}
	for _, t := range c.Tiers {
		all = append(all, attempt{string(t), tier(t), model})
	}
	return all
}

// expand fills the scene with DINEOF on the same days, the usual alternative.
func expand(s infer.Scene, progress func(done, total int)) (Row, error) {
	began := time.Now()
	series := classical.Series{Grid: s.Frames[0].Grid, Sea: s.Sea}
	for _, f := range append(slices.Clone(s.History), s.Frames...) {
		values := make([]float32, len(f.Values))
		s.Transform.Forward(values, f.Values)
		series.Frames = append(series.Frames, classical.Frame{Time: f.Time, Values: values})
	}
	if _, err := classical.DefaultDINEOF().Fill(series, len(series.Frames)-1, progress); err != nil {
		return Row{}, err
	}
	return Row{Name: "DINEOF", Seconds: time.Since(began).Seconds()}, nil
}

// measure fills the scene once.
func (a attempt) measure(ctx context.Context, s infer.Scene, progress func(done, total int)) (Row, error) {
	filler, err := infer.New(a.cfg, a.model)
	if err != nil {
		return Row{}, err
	}
	began := time.Now()
	out, err := filler.Fill(ctx, s, progress)
	if err != nil {
		return Row{}, err
	}
	row := Row{Name: a.name, Seconds: time.Since(began).Seconds()}
	if t := out[0].Took; a.model != nil {
		row.Analysis, row.Look, row.Members, row.Windows = t.Analysis.Seconds(), t.Look.Seconds(), t.Members.Seconds(), t.Windows
		row.Host = row.Seconds - row.Analysis - t.Network.Seconds()
		row.Network = 100 * t.Network.Seconds() / row.Seconds
	}
	return row, nil
}

// Print writes the report as a table.
func (r Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "sea      %s, %.0f %% of it missing, %d days before\n", r.Sea, r.Missing, r.Days)
	fmt.Fprintf(w, "network  %s\nengine   %s\n\n", r.Network, r.Engine)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tseconds\tcells/s\tanalysis\tlook\tmembers\thost\tnetwork\twindows")
	for _, row := range r.Rows {
		fmt.Fprintf(table, "%s\t%.2f\t%.0f", row.Name, row.Seconds, float64(r.Cells)/row.Seconds)
		if row.Windows > 0 {
			fmt.Fprintf(table, "\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f %%\t%d", row.Analysis, row.Look, row.Members, row.Host, row.Network, row.Windows)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if r.PeakMB > 0 {
		fmt.Fprintf(w, "\npeak memory %d MB\n", r.PeakMB)
	}
	return nil
}
