package models

import (
	"encoding/json"
	"strings"
	"testing"

	"lacuna/daemon/cli/clitest"
	"lacuna/pipeline/engine"
)

func TestEnginesSaysWhatIsUsableAndWhyNot(t *testing.T) {
	stdout, _, failed := clitest.Run(t, enginesCommand(), "--json")
	var list []engine.Status
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	usable := 0
	for _, s := range list {
		if s.Detail == "" {
			t.Errorf("engine %s: no word on what it is or why it cannot be used", s.Name)
		}
		if s.Usable {
			usable++
		}
	}
	if len(list) != 3 {
		t.Errorf("%d engines listed, want ort, ort:cuda and xla:cuda", len(list))
	}
	if (failed == nil) != (usable > 0) {
		t.Errorf("it ended with %v with %d usable engines", failed, usable)
	}
}

func TestNamedLibraryThatIsNotThereIsSaidPlainly(t *testing.T) {
	stdout, _, err := clitest.Run(t, enginesCommand(), "--library", "nowhere/libonnxruntime.so")
	if err == nil || !strings.Contains(stdout, "nowhere/libonnxruntime.so") {
		t.Errorf("it ended with %v, output %s, want an error and the name of the file", err, stdout)
	}
}
