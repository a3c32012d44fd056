// Command supply lists and checks the parts of a built program: 'make sbom' and
// 'make vulns' run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lacuna/internal/durable"
	"lacuna/ops/supply"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := &cobra.Command{
		Use: "supply", Short: "list the parts of the program and check whether they may be shipped",
		SilenceUsage: true,
	}
	root.AddCommand(sbomCommand(), vulnsCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

func sbomCommand() *cobra.Command {
	var version, runtime, starters, out, texts string
	cmd := &cobra.Command{
		Use: "sbom PROGRAM", Short: "write the bill of materials, CycloneDX in JSON", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parts, err := supply.Gather(cmd.Context(), args[0], runtime, starters)
			if err != nil {
				return err
			}
			parts.Version = version
			bill, err := supply.Bill(parts)
			if err != nil {
				return err
			}
			if err := durable.WriteFile(out, bill, 0o644); err != nil {
				return fmt.Errorf("write the bill of materials: %w", err)
			}
			if texts != "" {
				if err := writeTexts(cmd.Context(), parts, runtime, texts); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d modules, %d system packages, %d files\n",
				out, len(parts.Program.Modules), len(parts.Libraries), len(parts.Files))
			return nil
		},
	}
	cmd.Flags().StringVar(&version, "version", "unversioned", "version of the program")
	cmd.Flags().StringVar(&runtime, "onnxruntime", "", "path of libonnxruntime; none: it is left out")
	cmd.Flags().StringVar(&starters, "starters", "modelstore/starters/versions", "folder of the starter models")
	cmd.Flags().StringVar(&out, "out", "bin/lacuna.cdx.json", "file to write")
	cmd.Flags().StringVar(&texts, "texts", "", "file for the texts of all licences, which packages of the program carry; none: it is not written")
	return cmd
}

func writeTexts(ctx context.Context, parts supply.Parts, runtime, out string) error {
	sources, err := supply.FindSources(ctx)
	if err != nil {
		return err
	}
	further := map[string]string{"lacuna": "LICENSE"}
	if runtime != "" {
		further["onnxruntime"] = filepath.Join(filepath.Dir(runtime), "LICENSE") // ops/setup/onnxruntime.sh puts it there
	}
	text, err := supply.Texts(parts, sources, further)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(out, text, 0o644); err != nil {
		return fmt.Errorf("write the texts of licences: %w", err)
	}
	return nil
}

func vulnsCommand() *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use: "vulns PROGRAM", Short: "look up known vulnerabilities and retracted versions", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			faults, seen, err := check(cmd.Context(), args[0], database)
			if err != nil {
				return err
			}
			for _, line := range append(seen, faults...) {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			if len(faults) > 0 {
				return fmt.Errorf("%d faults in the parts of the program; they are listed above", len(faults))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&database, "database", os.Getenv("LACUNA_VULNDB"), "folder of OSV files or URL; none: that in the module cache")
	return cmd
}

// check returns the faults of the program and a summary of the checks.
func check(ctx context.Context, file, database string) (faults, seen []string, err error) {
	program, err := supply.Read(file)
	if err != nil {
		return nil, nil, err
	}
	if faults, err = supply.BelowFloors(program); err != nil {
		return nil, nil, err
	}
	withdrawn, untold, err := supply.Withdrawn(ctx, program)
	if err != nil {
		return nil, nil, err
	}
	// The standard library is among the modules and cannot be retracted.
	seen = append(seen, fmt.Sprintf("retracted or given up: %d of %d modules", len(withdrawn), len(program.Modules)-1-len(untold)))
	if len(untold) > 0 {
		seen = append(seen, "the Go proxy says nothing of "+strings.Join(untold, ", "))
	}
	faults = append(faults, withdrawn...)
	sources, err := supply.FindSources(ctx)
	if err != nil {
		return nil, nil, err
	}
	database, err = supply.Database(database, sources)
	if errors.Is(err, supply.ErrNoDatabase) {
		return faults, append(seen, "not looked up: "+err.Error()), nil
	}
	if err != nil {
		return nil, nil, err
	}
	found, err := supply.Vulnerabilities(ctx, file, database)
	if err != nil {
		return nil, nil, err
	}
	exceptions, err := supply.Exceptions()
	if err != nil {
		return nil, nil, err
	}
	seen = append(seen, fmt.Sprintf("known vulnerabilities of linked packages: %d, of which %d may stay", len(found), len(exceptions)))
	return append(faults, supply.Judge(found, exceptions)...), seen, nil
}
