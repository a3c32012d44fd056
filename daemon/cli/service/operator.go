package service

import (
	"encoding/json"
	"errors"
	"io"
	"text/tabwriter"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

// operator holds the flags of commands that look at a service or leave a request
// for it, beside a daemon that may be running.
type operator struct {
	config  string
	dataset string
	json    bool
}

func (o *operator) add(c *cobra.Command) {
	f := c.PersistentFlags()
	cli.AddConfig(f, &o.config)
	f.StringVar(&o.dataset, "dataset", "", "`NAME` of the dataset (default: all)")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// selection holds the flags of commands that take days, ranges and names of
// granules, beside their arguments.
type selection struct{ from, to string }

func (s *selection) add(c *cobra.Command) {
	c.Flags().StringVar(&s.from, "from", "", "first `DAY` of a range, such as 2024-04-01")
	c.Flags().StringVar(&s.to, "to", "", "last `DAY` of a range")
}

// of returns the granules that arguments and flags name.
func (s *selection) of(dataset string, args []string) (operate.Selection, error) {
	selected, err := operate.Select(dataset, args, s.from, s.to)
	if err != nil {
		return selected, cli.Usage(err)
	}
	return selected, nil
}

// load reads the configuration.
func (o *operator) load() (daemon.Config, error) {
	if err := cli.FindConfig(&o.config); err != nil {
		return daemon.Config{}, err
	}
	return daemon.LoadConfig(o.config)
}

// on runs do with the operations on the service.
func (o *operator) on(c *cobra.Command, do func(*operate.Operations) error) error {
	cfg, err := o.load()
	if err != nil {
		return err
	}
	operations, err := operate.Join(c.Context(), cfg.Operate())
	if err != nil {
		return err
	}
	return errors.Join(do(operations), operations.Close())
}

// print writes v as JSON if that is wanted, and else as write does.
func (o *operator) print(c *cobra.Command, v any, write func(w io.Writer)) error {
	return printAs(c, o.json, v, write)
}

// printAs writes v as JSON, or as write does, in columns.
func printAs(c *cobra.Command, asJSON bool, v any, write func(w io.Writer)) error {
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(v)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	write(w)
	return w.Flush()
}

// emptyList returns all, and [] in place of null, which programs stumble over.
func emptyList[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
