package models

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"lacuna/pipeline/engine"

	"github.com/spf13/cobra"
)

func enginesCommand() *cobra.Command {
	var cfg engine.Config
	var asJSON bool
	c := &cobra.Command{
		Use:   "engines",
		Short: "list what networks can run on here, and why not on the rest",
		Long: `Engines tries every engine on this machine: usable is one that has just computed
something. Where an engine is named auto, xla:cuda is taken if it is usable,
else ort.

Exit status: 0 at least one engine is usable, 1 none is, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list := engine.List(cfg)
			if err := printEngines(c, list, asJSON); err != nil {
				return err
			}
			for _, s := range list {
				if s.Usable {
					return nil
				}
			}
			return fmt.Errorf("no engine is usable on this machine")
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Library, "library", "", "libonnxruntime `FILE` (default: found)")
	f.StringVar(&cfg.Plugin, "plugin", "", "PJRT plug-in `FILE` for CUDA (default: found)")
	f.StringVar(&cfg.Python, "python", "", "Python `FILE` that has jax[cuda] (default: python3)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printEngines(c *cobra.Command, list []engine.Status, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(list)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, s := range list {
		usable := "no"
		if s.Usable {
			usable = "usable"
		}
		// An error may span lines; the first names the fault.
		detail, _, _ := strings.Cut(s.Detail, "\n")
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, usable, detail)
	}
	return w.Flush()
}
