package daemon

import (
	"lacuna/fetch"
	"lacuna/ops"
	"lacuna/pipeline/trusted"
)

// machine lends the status page and the alarms programs that nobody else may
// change and secrets that nobody else may read.
func machine() ops.Machine {
	return ops.Machine{
		Program: trusted.Program,
		Secret: func(path string) (string, error) {
			s, err := fetch.ReadSecretFile(path)
			return s.Reveal(), err
		},
	}
}
