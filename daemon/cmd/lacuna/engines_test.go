package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"lacuna/pipeline/engine"
)

func TestEnginesSaysWhatIsUsableAndWhyNot(t *testing.T) {
	var stdout bytes.Buffer
	code := run([]string{"engines", "--json"}, nil, &stdout, io.Discard)
	var list []engine.Status
	if err := json.Unmarshal(stdout.Bytes(), &list); err != nil {
		t.Fatalf("%v in %s", err, &stdout)
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
	if (code == exitDone) != (usable > 0) {
		t.Errorf("exit status %d with %d usable engines", code, usable)
	}
}

func TestNamedLibraryThatIsNotThereIsSaidPlainly(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run([]string{"engines", "--library", "nowhere/libonnxruntime.so"}, nil, &stdout, &stderr)
	if code != exitFailed || !bytes.Contains(stdout.Bytes(), []byte("nowhere/libonnxruntime.so")) {
		t.Errorf("exit status %d, output %s, want 1 and the name of the file", code, &stdout)
	}
}
