package retrain

import "testing"

func TestACardNamesFilesAndNotTheirFolders(t *testing.T) {
	got := withoutFolders("xla:/opt/python/lib/plugin.so - PJRT plugin (/opt/python/lib/plugin.so) v0.1 [1 device(s)]")
	if want := "xla:plugin.so - PJRT plugin (plugin.so) v0.1 [1 device(s)]"; got != want {
		t.Errorf("withoutFolders = %q, want %q", got, want)
	}
}
