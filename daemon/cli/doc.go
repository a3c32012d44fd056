// Package cli holds the parts that every command of lacuna shares: errors of
// usage and groups of commands, the log for people, bars and lines of progress,
// and the reader that decodes granules in a process of its own. Its own
// commands are about the program itself: version, the manual page, and that
// process.
//
// The commands lie in packages below, by what they work on: service on a
// configured service, files on files by hand, models on a model store and the
// engines, measure on the method itself. Input reads the data and the model
// that flags name, for those that need them. Each exports its commands and
// knows no other but input and this one; the program in daemon/cmd/lacuna puts
// them together.
//
// Commands parse flags, call and print. Progress and logs go to standard error,
// results to standard output, and a bar is drawn on a terminal only. This
// package does not know what any command does, nor exit statuses: it marks an
// error as one of usage, and the program makes a status of it.
package cli

import "github.com/spf13/cobra"

// Commands returns the commands about the program itself.
func Commands() []*cobra.Command {
	return []*cobra.Command{versionCommand(), decodeCommand(), manCommand()}
}
