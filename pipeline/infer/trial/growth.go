package trial

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat"

	"lacuna/pipeline/infer"
)

// Growth is the cost of filling as a function of the number of cells.
type Growth struct {
	Network string      `json:"network"`
	Engine  string      `json:"engine"` // set by the caller, as is the machine
	Tier    infer.Tier  `json:"tier"`
	Days    int         `json:"days"`
	Rows    []GrowthRow `json:"rows"`
	// CPU seconds grow as the cells to the power Exponent: 1 is in proportion.
	// R2 is the share of the variance of log seconds that the power explains.
	Exponent float64 `json:"exponent"`
	R2       float64 `json:"r2"`
}

// GrowthRow is a square sea that was filled.
type GrowthRow struct {
	Side int `json:"side"` // cells
	Row
	CPU    float64 `json:"cpu_seconds"`    // sum over all cores, which other work on the machine hardly changes
	PeakMB int64   `json:"peak_memory_mb"` // peak of the process so far
}

// Usage is the CPU time and memory of a process so far.
type Usage struct {
	CPU    time.Duration
	PeakMB int64
}

// Grow fills square seas of ascending sides in the first tier of cfg. used
// returns the usage of the process so far.
func Grow(ctx context.Context, cfg Config, d infer.Device, sides []int, used func() Usage) (Growth, error) {
	cfg.Tiers = cfg.Tiers[:1]
	g := Growth{Tier: cfg.Tiers[0], Days: cfg.Days}
	for _, side := range sides {
		cfg.Height, cfg.Width = side, side
		row, err := g.step(ctx, cfg, d, used)
		if err != nil {
			return g, fmt.Errorf("fill a sea of %d x %d: %w", side, side, err)
		}
		g.Rows = append(g.Rows, row)
	}
	g.fit()
	return g, nil
}

// warmSide is the side of the largest sea that is filled twice, because
// compiling would show in the time of the first.
const warmSide = 1024

// step fills one sea. Each has a model of its own: programs of other sizes
// would count as its memory.
func (g *Growth) step(ctx context.Context, cfg Config, d infer.Device, used func() Usage) (GrowthRow, error) {
	model, err := cfg.model(d)
	if err != nil {
		return GrowthRow{}, err
	}
	defer model.Close()
	g.Network = fmt.Sprintf("%s, %d weights", model.Name(), model.Weights())
	scene, _, err := cfg.scene(func(int, int) {})
	if err != nil {
		return GrowthRow{}, err
	}
	all := cfg.attempts(model, d.GPU)
	a := all[len(all)-1]
	if cfg.Height <= warmSide {
		if _, err := a.measure(ctx, scene, nil); err != nil {
			return GrowthRow{}, err
		}
	}
	before := used()
	row, err := a.measure(ctx, scene, nil)
	after := used()
	return GrowthRow{Side: cfg.Height, Row: row, CPU: (after.CPU - before.CPU).Seconds(), PeakMB: after.PeakMB}, err
}

// fit finds the power law.
func (g *Growth) fit() {
	var cells, seconds []float64
	for _, r := range g.Rows {
		cells, seconds = append(cells, math.Log(float64(r.Side*r.Side))), append(seconds, math.Log(r.CPU))
	}
	var origin float64
	origin, g.Exponent = stat.LinearRegression(cells, seconds, nil, false)
	g.R2 = stat.RSquared(cells, seconds, nil, origin, g.Exponent)
}

// Print writes the growth as a table.
func (g Growth) Print(w io.Writer) error {
	fmt.Fprintf(w, "network  %s\nengine   %s\ntier     %s, %d days before\n\n", g.Network, g.Engine, g.Tier, g.Days)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "side\tseconds\tanalysis\tlook\tmembers\tCPU seconds\tCPU µs/cell\tpeak MB")
	for _, r := range g.Rows {
		fmt.Fprintf(table, "%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\n", r.Side, r.Seconds, r.Analysis, r.Look, r.Members,
			r.CPU, 1e6*r.CPU/float64(r.Side*r.Side), r.PeakMB)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nCPU seconds grow as cells to the power %.3f (r2 %.4f)\n", g.Exponent, g.R2)
	return err
}
