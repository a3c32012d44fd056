package consumer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka"
)

// clients reads the topics with programs that know nothing of this code.
func (r *real) clients(t *testing.T) {
	cfg, _ := r.topics(t, "clients")
	sink := newSink(t, cfg)
	// The owner message lies on the same topic; it must disturb nobody.
	if err := sink.Claim(t.Context(), publish.Owner{State: "ours", Epoch: 1, Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	a, b := newProduct(t, "sea", "a", 1, 3_000_003), newProduct(t, "sea", "b", 1, 1_000)
	mustPublish(t, sink, a, b)
	b.Why = "sensor fault"
	if err := sink.Retract(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Kcat", func(t *testing.T) { readWithKcat(t, r.Addrs()[0], content) })
	t.Run("Python", func(t *testing.T) { readWithPython(t, r.Addrs()[0], content) })
}

func readWithKcat(t *testing.T, broker string, want []byte) {
	if _, err := exec.LookPath("kcat"); err != nil {
		t.Skip("there is no kcat here: install the package kcat to read the topics with it")
	}
	kcat := func(args ...string) []byte {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, "kcat", append([]string{"-b", broker, "-C", "-q"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var event struct {
		Headers []string
		Key     string
		Payload *string
	}
	var published kafka.Event
	var lines int
	for _, line := range strings.Split(strings.TrimSpace(string(kcat("-t", "clients.events", "-o", "beginning", "-e", "-J"))), "\n") {
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(event.Headers, " "), kafka.TypeOwner) {
			continue
		}
		lines++
		switch {
		case event.Key == "sea/a":
			if err := json.Unmarshal([]byte(*event.Payload), &published); err != nil {
				t.Fatal(err)
			}
		case lines == 3 && (event.Payload != nil || !strings.Contains(strings.Join(event.Headers, " "), "sensor fault")):
			t.Errorf("the third event is %s, want a tombstone that says why", line)
		}
	}
	if lines != 3 || published.Data.Parts == 0 {
		t.Fatalf("kcat read %d events, the first %+v", lines, published)
	}
	place := published.Data
	number := func(n int64) string { text, _ := json.Marshal(n); return string(text) }
	got := kcat("-t", place.Topic, "-p", number(int64(place.Partition)), "-o", number(place.FirstOffset), "-c", number(int64(place.Parts)), "-f", "%s")
	if !bytes.Equal(got, want) {
		t.Errorf("kcat put together %d bytes that differ from the %d published", len(got), len(want))
	}
}

func readWithPython(t *testing.T, broker string, want []byte) {
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" {
		t.Skip("LACUNA_PYTHON does not name a Python")
	}
	if err := exec.Command(python, "-c", "import confluent_kafka").Run(); err != nil {
		t.Skip("this Python has no confluent_kafka: see ops/setup/requirements-test.txt")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	example := filepath.Join("..", "..", "..", "docs", "consume.py")
	cmd := exec.CommandContext(ctx, python, example, broker, dir, "--prefix", "clients", "--once")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if said := string(out); strings.Count(said, "received ") != 2 || strings.Count(said, "retracted sea") != 1 || strings.Contains(said, "owner") {
		t.Errorf("the example says more than two products and a retraction:\n%s", out)
	}
	got, err := os.ReadFile(filepath.Join(dir, "sea", "a_l4.nc"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the example put together %d bytes that differ from the %d published (%v)\n%s", len(got), len(want), err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "sea", "b_l4.nc")); err == nil || !strings.Contains(string(out), "retracted sea/b/r1/retracted sensor fault") {
		t.Errorf("the example did not heed the retraction:\n%s", out)
	}
}
