// Package basin measures the filling of a whole basin, tier by tier, and how the
// cost grows with its size; 'lacuna bench' measures the first alone.
//
//	lacuna lab basin -engine ort -size tiny -tiers fast -sides 256,512,1024
package basin

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/infer/trial"
)

// Run measures a basin.
func Run(ctx context.Context, args []string, out, errs io.Writer) error {
	f := flag.NewFlagSet("basin", flag.ContinueOnError)
	f.SetOutput(errs)
	cfg := trial.DefaultConfig()
	name := f.String("engine", engine.Auto, "what networks run on")
	var settings engine.Config
	settings.AddFlags(f)
	tiers := f.String("tiers", "fast,standard,full", "which tiers")
	sides := f.String("sides", "", "fill square seas of these sides in the first tier and fit how the cost grows")
	asJSON := f.Bool("json", false, "print JSON")
	f.StringVar(&cfg.Product, "product", cfg.Product, "simulated product")
	f.IntVar(&cfg.Height, "height", 790, "rows")
	f.IntVar(&cfg.Width, "width", 1101, "columns")
	f.IntVar(&cfg.Days, "days", cfg.Days, "days before the field")
	f.StringVar(&cfg.Size, "size", cfg.Size, "of the networks")
	f.IntVar(&cfg.Network.Members, "members", 0, "how many (default: 4 for standard, 16 for full)")
	f.IntVar(&cfg.Network.WindowCells, "window", 0, "side of the largest window in cells")
	f.IntVar(&cfg.Network.Batch, "batch", 0, "windows or members at a time")
	if err := f.Parse(args); err != nil {
		return err
	}
	cfg.Tiers = nil
	for t := range strings.SplitSeq(*tiers, ",") {
		cfg.Tiers = append(cfg.Tiers, infer.Tier(t))
	}
	e, err := engine.Open(*name, settings, slog.New(slog.NewTextHandler(errs, nil)))
	if err != nil {
		return err
	}
	defer e.Finalize()
	if *sides != "" {
		return grow(ctx, cfg, e, out, *sides, *asJSON)
	}
	report, err := trial.Run(ctx, cfg, infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, nil)
	report.Engine, report.PeakMB = e.Kind+", "+e.Description(), used().PeakMB
	if err != nil {
		return err
	}
	return printReport(out, report, *asJSON)
}

// printReport prints a report as JSON or as a table.
func printReport(out io.Writer, report interface{ Print(io.Writer) error }, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(report)
	}
	return report.Print(out)
}

func grow(ctx context.Context, cfg trial.Config, e *engine.Engine, out io.Writer, list string, asJSON bool) error {
	var sides []int
	for text := range strings.SplitSeq(list, ",") {
		side, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("side: %w", err)
		}
		sides = append(sides, side)
	}
	growth, err := trial.Grow(ctx, cfg, infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, sides, used)
	if err != nil {
		return err
	}
	growth.Engine = e.Kind + ", " + e.Description()
	return printReport(out, growth, asJSON)
}

// used returns the CPU time and the peak memory of this process.
func used() trial.Usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return trial.Usage{}
	}
	return trial.Usage{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano()), PeakMB: u.Maxrss >> 10} // Maxrss is in KiB
}
