package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/modelstore"
)

// A version that won waits for a person, or proves itself on days of its own;
// meanwhile nothing else serves.
func TestAVersionThatWonWaitsForAPersonOrForItsShadowDays(t *testing.T) {
	tr := newTrainee(t)
	tr.extra = []string{"--reliability-steps", "0"} // the gate does not look at it
	dir := filepath.Join(t.TempDir(), "store")
	store := modelstore.New(dir, time.Now)
	run := func(c *exec.Cmd) retrain.Event {
		t.Helper()
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", c.Args, err, out)
		}
		return retrain.ReadEvents(bytes.NewReader(out), nil) // models promote writes prose
	}
	first := run(tr.command(t.Context(), dir, "--policy", "ask"))
	want := map[bool]string{true: "waiting", false: "refused"}[first.Won] // few steps may not be enough
	if _, err := store.Champion("sim"); err == nil || first.State != want {
		t.Fatalf("%+v, and a champion without a person", first)
	}
	run(exec.CommandContext(t.Context(), tr.program, "models", "promote", first.Version, "--store", dir, "--dataset", "sim", "--why", "looks good"))
	if c, err := store.Champion("sim"); err != nil || c.Version != first.Version {
		t.Fatalf("champion %+v, %v", c, err)
	}
	anew := run(tr.command(t.Context(), dir, "--from", "champion", "--only", "calibration"))
	if !sameNetworks(t, store, first.Version, anew.Version) || anew.State != "refused" || !strings.Contains(anew.Reasons[0], "by the same network") {
		t.Errorf("a calibration by the days that calibrated already: %+v", anew)
	}
	second := run(tr.command(t.Context(), dir, "--policy", "never", "--seed", "2"))
	shadow := run(exec.CommandContext(t.Context(), tr.program, "shadow", "--store", dir, "--dataset", "sim", "--engine", "ort", "--data", tr.archive,
		"--version", second.Version, "--since", tr.since.Format(time.RFC3339)))
	champion, err := store.Champion("sim")
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"promoted": second.Version, "refused": first.Version}[shadow.State]
	if champion.Version != want || len(shadow.Reasons) == 0 {
		t.Errorf("%+v, and %s serves", shadow, champion.Version)
	}
	t.Logf("%s: %q", shadow.State, shadow.Reasons)
}

// sameNetworks reports whether a version has the networks of another, and its maps of
// what they were asked.
func sameNetworks(t *testing.T, store *modelstore.Store, parent, child string) bool {
	t.Helper()
	a, err := store.Load(parent)
	if err != nil {
		t.Fatal(err)
	}
	b, err := store.Load(child)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{modelstore.ImputerFile, modelstore.QueryFile} {
		before, err := a.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if after, err := b.ReadFile(file); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s is another than that of %s: %v", file, parent, err)
		}
	}
	return b.Card.Parent == parent && b.Card.Kind == "calibrated anew" && b.Card.Training.Steps == 0
}
