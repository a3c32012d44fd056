package daemon

import "testing"

// skipInShort skips a test whose fills take minutes under the race detector; its
// stages, locks and signals have tests of their own.
func skipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("fills many granules: not in a short run")
	}
}
