// Package ingesttest saves tests that decode many granules half of the time: where
// LACUNA_TEST_DECODER names the program of package ingest/cmd/decoder, as it does under
// make test, granules are decoded by it and not by the whole test program.
package ingesttest

import (
	"os"

	"lacuna/pipeline/ingest"
)

// Decode decodes a granule and ends the process, where it is the child of a test that
// does so. It is the first call of TestMain, also of a test program that plays lacuna.
func Decode() {
	if len(os.Args) > 1 && os.Args[1] == "decode" {
		ingest.RunChild(os.Stdin, os.Stdout)
	}
	self, err := os.Executable()
	if path := os.Getenv("LACUNA_TEST_DECODER"); path != "" && err == nil {
		ingest.DecodeBy([]string{self, "decode"}, func() (string, error) { return path, nil })
	}
}
