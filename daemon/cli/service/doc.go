// Package service offers the commands on a configured service: to run it, to
// check and to see it, and to ask something of it. All of them take --config.
//
// Those that look, and those that ask, can be used while the daemon runs; what
// they ask for is done by that daemon, or by the next run or once. Results are
// tables for people or, with --json, a shape that does not change from release
// to release.
//
// The package decides nothing about granules or deliveries: it calls
// lacuna/daemon and prints. It does not know models, nor files outside of a
// service.
package service

import "github.com/spf13/cobra"

// Commands returns the commands on a service.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		runCommand(),
		onceCommand(),
		checkCommand(),
		planCommand(),
		fetchCommand(),
		statusCommand(),
		whyCommand(),
		quarantineCommand(),
		gridCommand(),
		redoCommand(),
		backfillCommand(),
		ledgerCommand(),
		publishCommand(),
	}
}
