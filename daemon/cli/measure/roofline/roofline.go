// Package roofline says how far the stages of a granule's way are from what the
// machine can do: the bytes and operations that a stage needs at least, the time in
// which this machine could have done them, and the share of that limit which is
// reached. Limits and stages are measured in one run, so that the shares of two
// machines, or of two releases, can be compared where their times cannot.
//
// Networks have random weights, and a window stands for a field: 'lacuna lab basin'
// measures whole ones, and 'lacuna lab steps' trainings.
package roofline

import (
	"context"
	_ "embed" // the figures of the last release
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"text/tabwriter"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"
)

// Result is one run.
type Result struct {
	Note     string  `json:"note,omitempty"` // when and where
	Grid     string  `json:"grid"`
	Networks string  `json:"networks,omitempty"` // and what they run on, or why there are none
	Machine  Machine `json:"machine"`
	Stages   []Stage `json:"stages"`
	Slowest  Profile `json:"slowest"`
}

// Stage is a stage as it was measured.
type Stage struct {
	Name   string  `json:"name"`
	Bytes  float64 `json:"bytes"`
	Flops  float64 `json:"flops"`
	CPU    float64 `json:"cpu_s"`
	Wall   float64 `json:"wall_s"`
	Limit  float64 `json:"limit_s"`     // of one core's time, or of a GPU's, without the disk
	Within string  `json:"limit_is_of"` // the part of the machine that sets it
	Disk   float64 `json:"disk_s"`      // that the disk takes at least; 0: none
	Share  float64 `json:"share"`       // Limit of CPU, or of Wall on a GPU
}

// released are the figures of the last release, by -json.
//
//go:embed released.json
var released []byte

// Command measures from the command line without its name.
func Command(ctx context.Context, args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("roofline", flag.ContinueOnError)
	flags.SetOutput(errs)
	height, width := flags.Int("height", 790, "`ROWS` of the grid"), flags.Int("width", 1101, "`COLUMNS` of the grid")
	rounds := flags.Int("rounds", 5, "`N` rounds, whose median counts")
	folder := flags.String("o", "", "`DIR` on the disk that is measured; default: that of temporary files")
	name := flags.String("engine", engine.Auto, "`ENGINE` of networks")
	var settings engine.Config
	settings.AddFlags(flags)
	size := flags.String("size", nn.Small, "`SIZE` of networks")
	asJSON := flags.Bool("json", false, "print JSON, to be kept as the figures of a release")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *height < 16 || *width < 16 || *rounds < 1 {
		return fmt.Errorf("roofline: %d x %d in %d rounds; give at least 16 x 16 and one round", *height, *width, *rounds)
	}
	var last Result
	if err := json.Unmarshal(released, &last); err != nil {
		return fmt.Errorf("roofline: figures of the last release: %w", err)
	}
	scratch, err := os.MkdirTemp(*folder, "lacuna-roofline-")
	if err != nil {
		return fmt.Errorf("roofline: %w", err)
	}
	defer os.RemoveAll(scratch)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("roofline: %w", err)
	}
	b, err := newBench(*height, *width, scratch, []string{self, "decode"})
	if err != nil {
		return fmt.Errorf("roofline: %w", err)
	}
	var none string
	n, err := openNetworks(*name, *size, settings, slog.New(slog.NewTextHandler(errs, nil)))
	if err != nil {
		none = fmt.Sprintf("Networks are left out: %v.", err)
	} else {
		defer n.close()
	}
	r, err := b.measure(ctx, n, *rounds)
	if err != nil {
		return fmt.Errorf("roofline: %w", err)
	}
	if r.Networks == "" {
		r.Networks = none
	}
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "\t")
		return encoder.Encode(r)
	}
	return r.print(out, last)
}

// measure measures machine and stages, and networks where there are any.
func (b bench) measure(ctx context.Context, n *networks, rounds int) (Result, error) {
	r := Result{Grid: fmt.Sprintf("%dx%d", b.height, b.width)}
	stages, err := b.stages(ctx)
	if err != nil {
		return r, err
	}
	if r.Machine, err = probe(ctx, b.folder, rounds); err != nil {
		return r, err
	}
	if n != nil {
		r.Networks = n.describe()
		if r.Machine.Products, err = n.products(ctx, rounds); err != nil {
			return r, fmt.Errorf("products of matrices: %w", err)
		}
		more, err := n.stages(ctx, b.height, b.width)
		if err != nil {
			return r, fmt.Errorf("networks: %w", err)
		}
		stages = append(stages, more...)
	}
	var slowest stage
	longest := -1.0
	for _, s := range stages {
		t, err := typical(ctx, rounds, s.run)
		if err != nil {
			return r, fmt.Errorf("%s: %w", s.name, err)
		}
		r.Stages = append(r.Stages, r.Machine.judge(s, t))
		if s.products == 0 && t.cpu > longest { // what an engine does is not seen from here
			slowest, longest = s, t.cpu
		}
	}
	if r.Slowest, err = profileOf(slowest); err != nil {
		return r, fmt.Errorf("profile of %s: %w", slowest.name, err)
	}
	return r, nil
}

// judge compares what a stage took with what it had to take. Its parts may overlap,
// so the largest of them is the limit.
func (m Machine) judge(s stage, t took) Stage {
	one := Stage{Name: s.name, Bytes: s.bytes, Flops: s.flops + s.products, CPU: t.cpu, Wall: t.wall, Disk: s.disk / m.Disk}
	limits := []limit{{"memory", s.bytes / m.Memory}, {"arithmetic", s.flops / m.Flops}, {"sha256", s.hash / m.Hashing}}
	if s.products > 0 {
		limits = []limit{{"products", s.products / m.Products}}
	}
	for _, l := range limits {
		if l.seconds > one.Limit {
			one.Limit, one.Within = l.seconds, l.within
		}
	}
	if spent := t.spent(s.device); spent > 0 {
		one.Share = one.Limit / spent
	}
	return one
}

// limit is the time that a part of the machine takes for a stage at least.
type limit struct {
	within  string
	seconds float64
}

// slower is the loss of a share that is told: less is noise of one run.
const slower = 0.05

// print writes the table, and what has become slower since a release.
func (r Result) print(out io.Writer, last Result) error {
	m := r.Machine
	fmt.Fprintf(out, "This machine, a core each: memory %.1f GB/s, arithmetic %.1f Gflop/s, sha256 %.2f GB/s; %d cores; disk %.2f GB/s synced.\n",
		m.Memory/1e9, m.Flops/1e9, m.Hashing/1e9, m.Cores, m.Disk/1e9)
	if r.Networks != "" {
		fmt.Fprintln(out, r.Networks)
	}
	if m.Products > 0 {
		fmt.Fprintf(out, "Products of matrices there: %.0f Gflop/s.\n", m.Products/1e9)
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s\tMB\tMflop\tlimit ms\tof\tprocessor ms\tshare\tdisk ms\tclock ms\tlast release\t\n", r.Grid)
	for _, s := range r.Stages {
		before := "-"
		if was, ok := last.share(s.Name, r.Grid); ok {
			before = fmt.Sprintf("%.3f", was)
		}
		fmt.Fprintf(table, "%s\t%.1f\t%.0f\t%.2f\t%s\t%.1f\t%.3f\t%.1f\t%.1f\t%s\t\n",
			s.Name, s.Bytes/1e6, s.Flops/1e6, 1e3*s.Limit, s.Within, 1e3*s.CPU, s.Share, 1e3*s.Disk, 1e3*s.Wall, before)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range r.Stages {
		if was, ok := last.share(s.Name, r.Grid); ok && s.Share < (1-slower)*was {
			fmt.Fprintf(out, "\n%s has become slower: %.0f %% less of its limit than at the last release.\n", s.Name, 100*(1-s.Share/was))
		}
	}
	return r.Slowest.print(out)
}

// share returns the share of a stage on a grid; ok is false where it is not known.
func (r Result) share(name, grid string) (share float64, ok bool) {
	i := slices.IndexFunc(r.Stages, func(s Stage) bool { return s.Name == name })
	if i < 0 || r.Grid != grid {
		return 0, false
	}
	return r.Stages[i].Share, true
}

// median returns the middle of some numbers, of which there is at least one.
func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
