// Command basinbench is the trial of a basin for machines without netCDF,
// which the command lacuna needs: 'lacuna bench' measures the same.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/infer/trial"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "basinbench:", err)
		os.Exit(1)
	}
}

func run() error {
	cfg := trial.DefaultConfig()
	name := flag.String("engine", engine.Auto, "what networks run on")
	var settings engine.Config
	settings.AddFlags(flag.CommandLine)
	tiers := flag.String("tiers", "fast,standard,full", "which tiers")
	sides := flag.String("sides", "", "fill square seas of these sides in the first tier and fit how the cost grows")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.StringVar(&cfg.Product, "product", cfg.Product, "simulated product")
	flag.IntVar(&cfg.Height, "height", 790, "rows")
	flag.IntVar(&cfg.Width, "width", 1101, "columns")
	flag.IntVar(&cfg.Days, "days", cfg.Days, "days before the field")
	flag.StringVar(&cfg.Size, "size", cfg.Size, "of the networks")
	flag.IntVar(&cfg.Network.Members, "members", 0, "how many (default: 4 for standard, 16 for full)")
	flag.IntVar(&cfg.Network.WindowCells, "window", 0, "side of the largest window in cells")
	flag.IntVar(&cfg.Network.Batch, "batch", 0, "windows or members at a time")
	flag.Parse()
	cfg.Tiers = nil
	for t := range strings.SplitSeq(*tiers, ",") {
		cfg.Tiers = append(cfg.Tiers, infer.Tier(t))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	e, err := engine.Open(*name, settings, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer e.Finalize()
	if *sides != "" {
		return grow(ctx, cfg, e, *sides, *asJSON)
	}
	report, err := trial.Run(ctx, cfg, infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, nil)
	report.Engine, report.PeakMB = e.Kind+", "+e.Description(), used().PeakMB
	if err != nil {
		return err
	}
	return tell(report, *asJSON)
}

// tell prints a report for programs or for people.
func tell(report interface{ Print(io.Writer) error }, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	return report.Print(os.Stdout)
}

func grow(ctx context.Context, cfg trial.Config, e *engine.Engine, list string, asJSON bool) error {
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
	return tell(growth, asJSON)
}

// used returns what this process has used on the host.
func used() trial.Usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return trial.Usage{}
	}
	return trial.Usage{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano()), PeakMB: u.Maxrss >> 10} // from KiB
}
