package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// UsageError is a command line that cannot be understood.
type UsageError struct{ error }

// Usage marks err as an error of usage.
func Usage(err error) error { return UsageError{err} }

// Unwrap returns the error that was marked.
func (e UsageError) Unwrap() error { return e.error }

// ReportUsage makes wrong flags and arguments of c errors of usage.
func ReportUsage(c *cobra.Command) {
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	args := c.Args
	if args == nil {
		return
	}
	c.Args = func(c *cobra.Command, a []string) error {
		if err := args(c, a); err != nil {
			return Usage(err)
		}
		return nil
	}
}

// Group makes c a command that only holds others. The flags that these share
// must satisfy required, unless it is nil.
func Group(c *cobra.Command, required func() error, subs ...*cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usage(fmt.Errorf("unknown command %q for 'lacuna %s'", args[0], c.Name()))
		}
		return c.Help()
	}
	c.AddCommand(subs...)
	for _, sub := range subs {
		if args := sub.Args; required != nil {
			sub.Args = func(c *cobra.Command, a []string) error {
				if err := args(c, a); err != nil {
					return err
				}
				return required()
			}
		}
		ReportUsage(sub)
	}
	return c
}
