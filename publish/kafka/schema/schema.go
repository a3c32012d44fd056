// Package schema holds the JSON Schemas of every message that package kafka
// writes, for those who read the topics in other languages.
//
// A file is named for the message and its version, such as
// product-event.v1.json. A version that has been released is never edited so
// that it refuses a message which it took before: fields are added as optional,
// and a change that readers must heed gets a new version and a new file.
// Headers are described as an object of strings.
//
// Package schema knows nothing of Kafka or of Go types; tests compare the two.
package schema

import (
	"embed"
	"io/fs"
)

//go:embed *.json
var files embed.FS

// Files returns the schemas, by file name.
func Files() fs.FS { return files }
