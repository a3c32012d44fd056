package service

import (
	"fmt"
	"io"

	"lacuna/daemon/books"
	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"

	"lacuna/internal/figure"
)

func ledgerCommand() *cobra.Command {
	var o operator
	c := &cobra.Command{
		Use:   "ledger",
		Short: "the books of the service: back them up, read them through, make them anew",
		Long: `Ledger works on the file in which the service keeps its books, state_dir/ledger.db.
Backup and check can be used while the daemon runs; rebuild cannot.

Exit status: 0 done, 1 failed (with check: the ledger is damaged), 2 usage,
78 bad configuration.`,
		Example: `  lacuna ledger backup /backup/ledger.db --config /etc/lacuna/lacuna.yaml
  lacuna ledger check --config lacuna.yaml
  lacuna ledger rebuild --config lacuna.yaml`,
	}
	f := c.PersistentFlags()
	cli.AddConfig(f, &o.config)
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cli.Group(c, nil, o.backupLedger(), o.checkLedger(), o.rebuildLedger())
}

func (o *operator) backupLedger() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "write the ledger as it is at one moment to a file",
		Long: `Backup writes a copy of the ledger as it is at one moment, while the daemon works
on. The copy is read through before it takes its name, and can be put in the
place of the ledger as it is: stop the daemon, copy it to state_dir/ledger.db,
remove ledger.db-wal and ledger.db-shm, and start the daemon.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.on(c, func(operations *operate.Operations) error {
				var bytes int64
				err := cli.During(c.ErrOrStderr(), "copying the ledger", func() (err error) {
					bytes, err = operations.Backup(c.Context(), args[0])
					return err
				})
				if err != nil {
					return err
				}
				return o.print(c, map[string]any{"file": args[0], "bytes": bytes}, func(w io.Writer) {
					fmt.Fprintf(w, "%s: %s\n", args[0], figure.Bytes(bytes))
				})
			})
		},
	}
}

func (o *operator) checkLedger() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "read the whole ledger and say what does not fit together",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.on(c, func(operations *operate.Operations) error {
				err := cli.During(c.ErrOrStderr(), "reading the ledger", func() error { return operations.CheckLedger(c.Context()) })
				if err != nil {
					return fmt.Errorf("%w; restart the daemon, which makes it anew from what is on the disk, or put a backup in its place", err)
				}
				return o.print(c, map[string]bool{"ok": true}, func(w io.Writer) { fmt.Fprintln(w, "the ledger is whole") })
			})
		},
	}
}

func (o *operator) rebuildLedger() *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild",
		Short: "move the ledger away and make another from what is on the disk",
		Long: `Rebuild moves the ledger away and makes another from its journal, the spool, what
was set aside and the products. The daemon does the same by itself at a start
where the ledger is damaged. Nothing is filled or published twice for it:
products that are there are recognised, and sinks that have them see nothing
new. What is not on the disk is lost with the old ledger, which stays beside the
new one: times of past steps, open re-analyses and the series of daily skill.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			flags := daemonFlags{config: o.config, log: "text"}
			d, err := flags.daemon(c.ErrOrStderr())
			if err != nil {
				return err
			}
			var done books.Rebuilt
			err = cli.During(c.ErrOrStderr(), "making the ledger anew", func() (err error) {
				done, err = d.Rebuild(c.Context())
				return err
			})
			if err != nil {
				return err
			}
			return o.print(c, done, func(w io.Writer) {
				fmt.Fprintf(w, "%d granules restored: %d with products, %d set aside, %d to fill; %d lost, %d files of the spool unknown\n",
					done.Granules, done.Products, done.SetAside, done.Waiting, done.Lost, done.Orphans)
				if done.Away != "" {
					fmt.Fprintf(w, "the ledger before is %s\n", done.Away)
				}
			})
		},
	}
}
