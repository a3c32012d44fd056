package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"
)

func TestGroupTellsWrongUsageFromFailure(t *testing.T) {
	failure := errors.New("the disk is full")
	tests := []struct {
		name  string
		args  []string
		fail  error
		usage bool
	}{
		{name: "help", args: nil},
		{name: "a command that works", args: []string{"list", "--store", "s"}},
		{name: "a command that fails", args: []string{"list", "--store", "s"}, fail: failure},
		{name: "unknown command", args: []string{"lst"}, usage: true},
		{name: "too many arguments", args: []string{"list", "x", "--store", "s"}, usage: true},
		{name: "unknown flag", args: []string{"list", "--stoer", "s"}, usage: true},
		{name: "a shared flag that is required", args: []string{"list"}, usage: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := ""
			list := &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return tt.fail }}
			c := &cobra.Command{Use: "models", SilenceErrors: true, SilenceUsage: true}
			c.PersistentFlags().StringVar(&store, "store", "", "")
			Group(c, func() error {
				if store == "" {
					return errors.New("--store DIR is required")
				}
				return nil
			}, list)
			c.SetArgs(tt.args)
			c.SetOut(&bytes.Buffer{})
			err := c.ExecuteContext(t.Context())
			if usage := errors.As(err, new(UsageError)); usage != tt.usage || (err == nil) != (tt.fail == nil && !tt.usage) || !errors.Is(err, tt.fail) && tt.fail != nil {
				t.Errorf("it ended with %v, an error of usage: %v", err, usage)
			}
		})
	}
}
