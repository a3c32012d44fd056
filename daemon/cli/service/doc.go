// Package service offers the commands on a configured service: to run it, to
// check and to see it, and to ask something of it. All of them take --config.
//
// They can be used while the daemon runs, which then carries out their requests;
// without one the next run or once does. Those that do a daemon's work themselves
// (run, once, fetch, ledger rebuild, publish takeover) need the state for
// themselves. Results are tables for people or, with --json, for programs; golden
// files hold the shape of both.
//
// The package decides nothing about granules or deliveries: it calls
// lacuna/daemon and prints. It does not open models, nor files outside of a
// service.
package service

import "github.com/spf13/cobra"

// Commands returns the commands on a service.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		runCommand(),
		onceCommand(),
		workerCommand(),
		checkCommand(),
		planCommand(),
		fetchCommand(),
		statusCommand(),
		whyCommand(),
		quarantineCommand(),
		gridCommand(),
		tuningCommand(),
		trialCommand(),
		redoCommand(),
		backfillCommand(),
		ledgerCommand(),
		publishCommand(),
	}
}
