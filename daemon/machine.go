package daemon

import (
	"lacuna/fetch"
	"lacuna/ops"
	"lacuna/pipeline/trusted"
)

// machine gives package ops the checks that no other user can change a program or
// read a secret file.
func machine() ops.Machine {
	return ops.Machine{
		Program: trusted.Program,
		Secret: func(path string) (string, error) {
			s, err := fetch.ReadSecretFile(path)
			return s.Reveal(), err
		},
	}
}
