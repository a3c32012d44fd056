package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsSavedIsLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var got map[string]int
	if known, err := Load(path, &got); known || err != nil {
		t.Errorf("a file that is not there: %v, %v", known, err)
	}
	if err := Save(path, map[string]int{"granules": 3}); err != nil {
		t.Fatal(err)
	}
	if known, err := Load(path, &got); !known || err != nil || got["granules"] != 3 {
		t.Errorf("loaded %v, %v, %v", got, known, err)
	}
}

func TestADamagedFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"granu`), 0o600); err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	if _, err := Load(path, &got); err == nil || !strings.Contains(err.Error(), path+" is damaged, remove it") {
		t.Errorf("error %v", err)
	}
}
