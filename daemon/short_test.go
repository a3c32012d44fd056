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

// oneByOne skips a test of one pass after another in a short run, which is for the
// race detector: what the stages of a pass do side by side, the tests that stay do
// as well, by a pass or by a daemon that runs.
func oneByOne(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("makes one pass after another: not in a short run")
	}
}
