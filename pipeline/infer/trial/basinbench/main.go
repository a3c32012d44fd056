// Command basinbench is the trial of a basin for machines without netCDF,
// which the command lacuna needs: 'lacuna bench' measures the same.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"

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
	cache := flag.String("cache", "", "folder where XLA keeps its tuning")
	tiers := flag.String("tiers", "fast,standard,full", "which tiers")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.StringVar(&cfg.Product, "product", cfg.Product, "simulated product")
	flag.IntVar(&cfg.Height, "height", 790, "rows")
	flag.IntVar(&cfg.Width, "width", 1101, "columns")
	flag.IntVar(&cfg.Days, "days", cfg.Days, "days before the field")
	flag.StringVar(&cfg.Size, "size", cfg.Size, "of the networks")
	flag.IntVar(&cfg.Network.WindowCells, "window", 0, "side of the largest window in cells")
	flag.IntVar(&cfg.Network.Batch, "batch", 0, "windows or members at a time")
	flag.Parse()
	cfg.Tiers = nil
	for t := range strings.SplitSeq(*tiers, ",") {
		cfg.Tiers = append(cfg.Tiers, infer.Tier(t))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	e, err := engine.Open(*name, engine.Config{CacheDir: *cache}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer e.Finalize()
	report, err := trial.Run(ctx, cfg, infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, nil)
	report.Engine = e.Kind + ", " + e.Description()
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	return report.Print(os.Stdout)
}
