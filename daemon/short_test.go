package daemon

import "testing"

// skipInShort skips a test whose fills take minutes with the race detector in
// them; the stages, locks and signals that it would look at have tests of their
// own.
func skipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("fills many granules: not in a short run")
	}
}
