package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"lacuna/daemon"

	"github.com/spf13/cobra"
)

// operator is what the commands share that look at a service and ask it for
// something, beside a daemon that may be running.
type operator struct {
	config  string
	dataset string
	json    bool
}

func (o *operator) add(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVarP(&o.config, "config", "c", "", "configuration `FILE` (required)")
	f.StringVar(&o.dataset, "dataset", "", "`NAME` of the dataset (default: all)")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// load reads the configuration.
func (o *operator) load() (daemon.Config, error) {
	if o.config == "" {
		return daemon.Config{}, usageError{errors.New("--config FILE is required")}
	}
	return daemon.LoadConfig(o.config)
}

// on runs do with the books of the service.
func (o *operator) on(c *cobra.Command, do func(*daemon.Operations) error) error {
	cfg, err := o.load()
	if err != nil {
		return err
	}
	books, err := daemon.JoinOperations(c.Context(), cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(books), books.Close())
}

// print writes v as JSON if that is wanted, and else as write does.
func (o *operator) print(c *cobra.Command, v any, write func(w io.Writer)) error {
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(v)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	write(w)
	return w.Flush()
}

// group makes c a command that only holds others, and reports wrong usage of
// those as such.
func group(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError{fmt.Errorf("unknown command %q for 'lacuna %s'", args[0], c.Name())}
		}
		return c.Help()
	}
	c.AddCommand(subs...)
	for _, sub := range subs {
		args := sub.Args
		sub.Args = func(c *cobra.Command, a []string) error {
			if err := args(c, a); err != nil {
				return usageError{err}
			}
			return nil
		}
		sub.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	}
	return c
}

// emptyList is all, or an empty list for programs that stumble over null.
func emptyList[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
