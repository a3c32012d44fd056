package operate

import (
	"os"
	"path/filepath"
	"testing"

	"lacuna/daemon/intake"
	"lacuna/daemon/state"
)

// The version of a Copernicus dataset is chosen once and remembered: a plan
// sees the choice, but must not make it.
func TestPlanRemembersNoChoice(t *testing.T) {
	dir := state.Dir(t.TempDir())
	s := Station{Settings: Settings{State: dir, Datasets: []Dataset{{Dataset: intake.Dataset{Name: "sea"}}}}}
	if err := os.WriteFile(dir.Version("sea"), []byte("202311\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	look, err := s.onlooker(scratch)
	if err != nil {
		t.Fatal(err)
	}
	copied := look.Datasets[0].Archive.CMEMS.PinFile
	text, err := os.ReadFile(copied)
	if err != nil || string(text) != "202311\n" || filepath.Dir(copied) != scratch {
		t.Errorf("the onlooker's choice is %q in %s, %v", text, copied, err)
	}
	if s.Datasets[0].Archive.CMEMS.PinFile != "" {
		t.Error("the service's own settings changed")
	}
}
