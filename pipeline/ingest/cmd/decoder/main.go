// Command decoder decodes one granule and ends. It is part of lacuna, which carries it
// and runs it from memory (make build): a whole lacuna does the same, but has a thousand
// packages to initialise before it begins.
package main

import (
	"os"

	"lacuna/pipeline/ingest"
)

func main() { ingest.RunChild(os.Stdin, os.Stdout) }
