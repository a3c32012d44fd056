// Package files offers the commands on files by hand, beside any service: to make
// granules, to look at one, to fill some, to receive products, and to write the
// configuration of a dataset.
//
// A product that is received appears whole and verified or not at all, the same
// granules, model and seed give the same bytes of a filled one, and init
// overwrites nothing. The package does not know a ledger, a queue or a daemon
// that runs.
package files

import "github.com/spf13/cobra"

// Commands returns the commands on files.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		initCommand(),
		inspectCommand(),
		fillCommand(),
		simulateCommand(),
		consumeCommand(),
	}
}
