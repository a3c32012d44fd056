// Package measure offers the commands that measure the method on somebody's data:
// tables of methods, whole scenes, products beside measurements in the sea, masks of
// a prior, and the laboratory behind
// them, with the packed series that it takes.
//
// It is the only package outside of the laboratory that imports it, and the
// program the only one that imports this: nothing that serves imports a
// measurement. No command here changes a store, a service or a product; a
// calibration is written where --calibration says.
package measure

import "github.com/spf13/cobra"

// Commands returns the commands that measure.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		evaluateCommand(),
		scenesCommand(),
		matchupCommand(),
		priorCommand(),
		packCommand(),
		labCommand(),
	}
}
