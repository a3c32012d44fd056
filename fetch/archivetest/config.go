package archivetest

import (
	"strings"
	"testing"
)

// A ConfigCase is a change that makes a good config a bad one.
type ConfigCase[C any] struct {
	Name string
	Edit func(*C)
	Key  string // beginning of the message
}

// CheckConfigs opens good, which must work, and then each of the bad configs
// that the cases make of it: the message must name the archive and the key, and
// never hold secret, which the cases put where a password may stand.
func CheckConfigs[C any](t *testing.T, good C, secret, archive string, open func(C) error, cases []ConfigCase[C]) {
	t.Helper()
	if err := open(good); err != nil {
		t.Errorf("a good config: %v", err)
	}
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			bad := good
			tt.Edit(&bad)
			err := open(bad)
			switch {
			case err == nil || !strings.HasPrefix(err.Error(), archive+" config: "+tt.Key):
				t.Errorf("%v, want a message that begins with %q", err, archive+" config: "+tt.Key)
			case strings.Contains(err.Error(), secret):
				t.Errorf("the message shows a password: %v", err)
			}
		})
	}
}
