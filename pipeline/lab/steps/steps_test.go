package steps

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"lacuna/pipeline/engine/ort"
)

func TestReportIsOneLineOfJSON(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	for _, backbone := range []string{"unet", "vit"} {
		var out bytes.Buffer
		args := []string{"-engine", "ort", "-backbone", backbone, "-size", "tiny", "-batch", "1", "-side", "16", "-steps", "2"}
		if err := Run(t.Context(), args, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("%d lines were printed, want one", n)
		}
		var r report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Engine != "ort" || r.Params < 100_000 || r.MSPerStep <= 0 || r.ForwardMS <= 0 || r.LastLoss >= r.FirstLoss {
			t.Errorf("%s: report is %+v, want times and a loss that falls", backbone, r)
		}
	}
}

func TestMistakesOnTheCommandLineAreErrors(t *testing.T) {
	for _, args := range [][]string{
		{"-dtype", "float8"},
		{"-size", "huge"},
		{"-batch", "0"},
		{"-engine", "abacus", "-size", "tiny"},
		{"-nonsense"},
	} {
		if err := Run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
