package cli

import (
	"fmt"
	"os"

	"lacuna/pipeline/ingest"

	"github.com/spf13/cobra"
)

// decode is the name of the command whose process decodes granules.
const decode = "decode"

// decodeCommand is the child process in which granules are decoded.
func decodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    decode,
		Short:  "decode a granule for the parent process; not for people",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			ingest.RunChild(c.InOrStdin(), c.OutOrStdout())
			return nil // it does not come back: its status is part of its protocol
		},
	}
}

// DecodeChild is the command line of the process that decodes granules: this
// program again.
func DecodeChild() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, decode}, nil
}

// DecodeBy has granules decoded by a program that does nothing else, where there is one
// and it runs here, in place of this program again.
func DecodeBy(decoder []byte) {
	if child, err := DecodeChild(); err == nil && decoder != nil { // an error shows where a granule is read
		ingest.DecodeBy(child, ingest.InMemory(decoder))
	}
}

// NewReader returns a reader of granules with the default limits.
func NewReader() (*ingest.Reader, error) {
	child, err := DecodeChild()
	if err != nil {
		return nil, err
	}
	return ingest.NewReader(ingest.DefaultConfig(), child)
}
