package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

func checkCommand() *cobra.Command {
	var flags daemonFlags
	online, asJSON := false, false
	c := &cobra.Command{
		Use:   "check",
		Short: "check a configuration without running it",
		Long: `Check reads a configuration as run does and reports everything that is wrong
with it: file, line, what is there and what is allowed.

With --online it also tries what the configuration names: whether the folders
can be written to and have room, the ledger is whole, what confines the process
that decodes granules, each archive answers and takes the credentials, buckets
and Kafka topics are there (topics are made if they may be), whether they and
the folder of products are this state's, the engine (and so a GPU, where one is
asked for) and the models load, and the hook for alarms is there. Each is a
line, ok or failed with what to do. Nothing is fetched, filled or published, and
the daemon may be running.

Exit status: 0 the configuration is good, and with --online all is well;
1 something that was tried is not well; 2 usage; 78 the configuration is bad.`,
		Example: "  lacuna check --config systemd/lacuna.yaml\n  lacuna check --config /etc/lacuna/lacuna.yaml --online",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cli.FindConfig(&flags.config); err != nil {
				return err
			}
			cfg, err := daemon.LoadConfig(flags.config)
			if err != nil {
				return err
			}
			if err := cfg.Readable(); err != nil {
				return err
			}
			if online {
				flags.log = "text"
				return tryOnline(c, flags, asJSON)
			}
			if err := warnOfSandbox(c); err != nil {
				return err
			}
			return describeConfig(c.OutOrStdout(), flags.config, cfg)
		},
	}
	cli.AddConfig(c.Flags(), &flags.config)
	c.Flags().BoolVar(&online, "online", false, "try archives, sinks, models, disks and the ledger as well")
	c.Flags().BoolVar(&asJSON, "json", false, "with --online: print JSON, a line for each thing")
	return c
}

// warnOfSandbox prints a line if this machine does not fully confine the process
// that decodes granules.
func warnOfSandbox(c *cobra.Command) error {
	reader, err := cli.NewReader()
	if err != nil {
		return err
	}
	walls, err := reader.Isolation(c.Context())
	if err != nil {
		return err
	}
	if !walls.Tight() {
		fmt.Fprintf(c.OutOrStdout(), "the decoding child is %v\n", walls)
	}
	return nil
}

// describeConfig prints the datasets of a good configuration.
func describeConfig(w io.Writer, file string, cfg daemon.Config) error {
	for _, set := range cfg.Datasets {
		back, ahead := set.Fill.Window()
		fmt.Fprintf(w, "dataset %s: %s from %s, filled by %s, %s back and %s ahead\n", set.Name,
			cmp.Or(set.Product, "any product"), set.Place(), set.Fill.Method, back, ahead)
		if form := set.ProductForm(); form != "" {
			fmt.Fprintf(w, "dataset %s: %s\n", set.Name, form)
		}
		for _, caveat := range set.Caveats() {
			fmt.Fprintf(w, "dataset %s: %s\n", set.Name, caveat)
		}
	}
	_, err := fmt.Fprintf(w, "%s is good\n", file)
	return err
}

// tryOnline tries archives, sinks, models and disks of a configuration and prints
// each finding as it comes.
func tryOnline(c *cobra.Command, flags daemonFlags, asJSON bool) error {
	d, err := flags.daemon(io.Discard) // findings are printed instead of logged
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	ok, err := d.Station().Online(c.Context(), func(f operate.Finding) {
		switch {
		case asJSON:
			_ = json.NewEncoder(out).Encode(f) // a closed pipe soon ends the process
		case f.OK:
			fmt.Fprintf(out, "ok      %s: %s\n", f.What, f.Text)
		default:
			fmt.Fprintf(out, "FAILED  %s: %s\n        %s\n", f.What, f.Text, upper(f.ToDo))
		}
	})
	if err == nil && !ok {
		err = errors.New("not everything is well")
	}
	return err
}
