// Package models offers the commands on models: to train and fine-tune one, to
// look at, choose and move the versions of a store, and to list and time the
// engines of this machine. The daemon starts the hidden ones, for drift and for
// shadow days.
//
// It turns flags into the requests of lacuna/daemon/retrain and into calls of the
// store, and prints. It does not know when a training is due, how a version is
// judged, nor the rules of a promotion.
package models

import "github.com/spf13/cobra"

// Commands returns the commands on models.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		trainCommand(),
		driftCommand(),
		shadowCommand(),
		modelsCommand(),
		enginesCommand(),
		benchCommand(),
	}
}
