package service

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

func quarantineCommand() *cobra.Command {
	var o operator
	c := &cobra.Command{
		Use:   "quarantine",
		Short: "granules that were set aside: list them, look at one, try it again",
		Long: `Quarantine works on granules that could not be used and were set aside, each
with a sentence that says why and what to do. It can be used while the daemon
runs; what is tried again is taken up by that daemon, or by the next run or
once.

Exit status: 0 done, 1 failed, 2 usage, 78 bad configuration.`,
		Example: `  lacuna quarantine list --config /etc/lacuna/lacuna.yaml
  lacuna quarantine show 20240409_chl.nc --config lacuna.yaml
  lacuna quarantine retry 20240409_chl.nc --config lacuna.yaml
  lacuna quarantine retry --all --dataset black-sea-chl --config lacuna.yaml`,
	}
	o.add(c)
	return cli.Group(c, nil, o.listAside(), o.showAside(), o.retryAside())
}

func (o *operator) listAside() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "what is set aside, the latest first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.on(c, func(operations *operate.Operations) error {
				all, err := operations.Quarantine(c.Context(), o.dataset)
				if err != nil {
					return err
				}
				return o.print(c, emptyList(all), func(w io.Writer) {
					fmt.Fprintln(w, "SINCE\tDATASET\tREASON")
					for _, a := range all {
						fmt.Fprintf(w, "%s\t%s\t%s\n", a.Since.UTC().Format("2006-01-02 15:04"), a.Dataset, a.Reason)
					}
				})
			})
		},
	}
}

func (o *operator) showAside() *cobra.Command {
	return &cobra.Command{
		Use:   "show GRANULE",
		Short: "why a granule was set aside, and where its file is",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.on(c, func(operations *operate.Operations) error {
				all, err := operations.ShowAside(c.Context(), o.dataset, args[0])
				if err != nil {
					return err
				}
				return o.print(c, emptyList(all), func(w io.Writer) {
					for _, a := range all {
						fmt.Fprintf(w, "granule:\t%s\ndataset:\t%s\nrevision:\t%d\nsince:\t%s\nreason:\t%s\nfile:\t%s\nbytes:\t%d\nsha256:\t%s\n",
							a.Granule, a.Dataset, a.Revision, a.Since.UTC().Format(time.RFC3339), a.Reason,
							cmp.Or(a.File, "none: it was refused unread, or the file is gone"), a.Bytes, cmp.Or(a.SHA256, "-"))
					}
				})
			})
		},
	}
}

func (o *operator) retryAside() *cobra.Command {
	all := false
	var chosen selection
	c := &cobra.Command{
		Use:   "retry GRANULE|DAY|FROM..TO... | retry --all",
		Short: "try granules, a day or a range again, or all that are set aside",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			selected, err := chosen.of(o.dataset, args)
			if err != nil {
				return err
			}
			if all != selected.IsZero() {
				return cli.Usage(errors.New("name granules, a day or a range like 2024-04-01..2024-04-30, or give --all"))
			}
			return o.on(c, func(operations *operate.Operations) error {
				done, err := operations.RetryAside(c.Context(), selected)
				if err != nil {
					return err
				}
				return errors.Join(o.print(c, emptyList(done), func(w io.Writer) { printRetried(w, done) }), problems(done))
			})
		},
	}
	chosen.add(c)
	c.Flags().BoolVar(&all, "all", false, "everything that is set aside, of the dataset or of all")
	return c
}

func printRetried(w io.Writer, done []operate.Retried) {
	n := 0
	for _, r := range done {
		verdict := "taken up again"
		if r.Problem != "" {
			verdict = "stays set aside: " + r.Problem
		} else {
			n++
		}
		fmt.Fprintf(w, "%s\t%s\trevision %d\t%s\n", r.Dataset, r.Granule, r.Revision, verdict)
	}
	fmt.Fprintf(w, "%d granules taken up again\n", n)
}

// problems returns an error where some granules stay set aside.
func problems(done []operate.Retried) error {
	n := 0
	for _, r := range done {
		if r.Problem != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d granules stay set aside", n, len(done))
}
