package main

import (
	"fmt"
	"os"

	"lacuna/pipeline/ingest"

	"github.com/spf13/cobra"
)

// decodeCommand is the child process in which granules are decoded.
func decodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "decode",
		Short:  "decode a granule for the parent process; not for people",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			ingest.RunChild(c.InOrStdin(), c.OutOrStdout())
			return nil // it does not come back: its status is part of its protocol
		},
	}
}

// decodeChild is the command line of that child.
func decodeChild() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, "decode"}, nil
}

// newReader returns a reader with the default limits.
func newReader() (*ingest.Reader, error) {
	child, err := decodeChild()
	if err != nil {
		return nil, err
	}
	return ingest.NewReader(ingest.DefaultConfig(), child)
}
