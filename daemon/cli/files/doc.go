// Package files offers the commands on files by hand, beside any service: to make
// granules, to look at one, to fill some, to receive products, and to write the
// configuration of a dataset.
//
// A file that it writes appears whole, and init overwrites none. It does not know
// a ledger, a queue or a daemon that runs: a product of fill is the one that the
// daemon would have made of the same granules, without its history.
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
