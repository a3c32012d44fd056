// Command lacuna fills the gaps of satellite ocean maps, as a daemon or by
// hand.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/daemon/cli/files"
	"lacuna/daemon/cli/measure"
	"lacuna/daemon/cli/models"
	"lacuna/daemon/cli/service"
	"lacuna/internal/frugal"

	"github.com/spf13/cobra"
)

// Exit statuses; the help of every command names them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitConfig = 78 // EX_CONFIG of sysexits.h: systemd and scripts know it
)

func main() {
	frugal.Start()
	cli.DecodeBy(decoder)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its surroundings passed in, so that tests can call it.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var usage cli.UsageError
	switch {
	case errors.Is(err, daemon.ErrConfig): // also where a flag was to be completed from it
		fmt.Fprintf(stderr, "lacuna: %v\n", err)
		return exitConfig
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "lacuna: %v\nRun 'lacuna --help' or 'lacuna COMMAND --help'.\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "lacuna: %v\n", err)
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "lacuna",
		Short: "fill the gaps of satellite ocean maps",
		Long: `Lacuna turns gappy Level-3 satellite maps of the ocean into gap-free maps with
an uncertainty for every filled pixel. It runs as a daemon that takes granules
from an archive as they arrive, or on files by hand.

Exit status: 0 done, 1 failed, 2 usage, 78 bad configuration.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage(fmt.Errorf("unknown command %q", args[0]))
			}
			return c.Help()
		},
	}
	root.AddCommand(slices.Concat(service.Commands(), files.Commands(), models.Commands(), measure.Commands(), cli.Commands())...)
	for _, c := range root.Commands() {
		if c.Name() == "train" { // by hand and of a service, from two packages
			for _, sub := range service.TrainCommands() {
				cli.ReportUsage(sub)
				c.AddCommand(sub)
			}
		}
	}
	for _, c := range append(root.Commands(), root) {
		cli.ReportUsage(c)
	}
	return root
}
