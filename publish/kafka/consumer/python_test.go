package consumer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"

	kafkago "github.com/segmentio/kafka-go"
)

// example runs a Python program that can import the example of the docs.
func example(t *testing.T, args ...string) (stdout []byte, stderr string) {
	t.Helper()
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" {
		t.Skip("LACUNA_PYTHON does not name a Python")
	}
	if err := exec.Command(python, "-c", "import confluent_kafka").Run(); err != nil {
		t.Skip("this Python has no confluent_kafka: see ops/setup/requirements-test.txt")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "..", "..", "docs"), "PYTHONDONTWRITEBYTECODE=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, &said)
	}
	return stdout, said.String()
}

func TestThePythonExampleKeepsNamesAlike(t *testing.T) {
	names := []string{
		"a_l4.nc", strings.Repeat("a", 297) + ".nc", strings.Repeat("海", 100) + ".nc", "aaa" + strings.Repeat("🌊", 70) + ".nc",
		strings.Repeat("a", 300), "a." + strings.Repeat("b", 300), "a\nb.nc", "é\x7f", strings.Repeat("é", 112), strings.Repeat("é", 113),
		"a." + strings.Repeat("é", 7) + strings.Repeat("\x01", 3), "a~" + strings.Repeat("0", 64) + ".nc", "a~" + strings.Repeat("0", 64), "a~" + strings.Repeat("0", 64) + ".nc\n",
	}
	for _, name := range names[:4:4] {
		names = append(names, consumer.FileName(name))
	}
	given, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := example(t, "-c", "import json, sys, consume\nprint(json.dumps([consume.file_name(n) for n in json.loads(sys.argv[1])]))", string(given))
	var got []string
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(names) {
		t.Fatalf("%v in %s", err, out)
	}
	for i, name := range names {
		if want := consumer.FileName(name); got[i] != want {
			t.Errorf("%q is kept as %q in Python and as %q in Go", name, got[i], want)
		}
	}
}

func TestThePythonExampleSkipsLostProducts(t *testing.T) {
	broker := fakeBroker(t)
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	a, b := newProduct(t, "sea", "a", 1, 3_000_003), newProduct(t, "sea", "b", 1, 1000)
	long := newProduct(t, "sea", "long", 1, 1000)
	long.Name = strings.Repeat("a", 297) + ".nc"
	mustPublish(t, sink, a)
	poison := []func(*kafka.Event){
		func(e *kafka.Event) { e.Data.LastOffset += 1000; e.Data.Parts++ },
		func(e *kafka.Event) { e.Data.FirstOffset, e.Data.LastOffset = 1e12, 1e12+9 },
		func(e *kafka.Event) { e.Data.FirstOffset = -1 },
		func(e *kafka.Event) { e.Data.Parts = 1 << 40 },
		func(e *kafka.Event) { e.Data.Partition = 77 },
		func(e *kafka.Event) { e.Data.Topic = "elsewhere" },
		func(e *kafka.Event) { e.File.SHA256 = strings.Repeat("0", 64) },
	}
	for i, edit := range poison {
		forge(t, broker.ListenAddrs(), func(m *kafkago.Message) {
			var e kafka.Event
			if err := json.Unmarshal(m.Value, &e); err != nil {
				t.Fatal(err)
			}
			edit(&e)
			m.Value, _ = json.Marshal(e)
			setHeader(m, "ce_subject", fmt.Sprintf("poison%d.nc", i))
		})
	}
	for _, value := range []string{"{", "[]", strings.Repeat("[", 100_000), `{"data":{"topic":"lacuna.data"}}`} {
		forge(t, broker.ListenAddrs(), func(m *kafkago.Message) { m.Value = []byte(value) })
	}
	forge(t, broker.ListenAddrs(), func(m *kafkago.Message) { setHeader(m, "ce_subject", "../escaped.nc") })
	mustPublish(t, sink, b, long)
	if err := sink.Replay(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "in")
	told, said := example(t, filepath.Join("..", "..", "..", "docs", "consume.py"), broker.ListenAddrs()[0], dir, "--once")
	if n := bytes.Count(told, []byte("received "+a.ID())); n != 1 {
		t.Errorf("a product that was sent once more was received %d times:\n%s", n, told)
	}
	names := map[string]bool{}
	for _, p := range []struct{ name, path string }{{a.Name, a.Path}, {b.Name, b.Path}, {consumer.FileName(long.Name), long.Path}} {
		want, err := os.ReadFile(p.path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "sea", p.name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%.20s has %d bytes that differ from the %d published (%v)\n%s", p.name, len(got), len(want), err, said)
		}
		names[p.name], names[p.name+".json"] = true, true
	}
	found, err := os.ReadDir(filepath.Join(dir, "sea"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !names[f.Name()] {
			t.Errorf("the folder has %s", f.Name())
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, ".set-aside.jsonl"))
	if n := bytes.Count(list, []byte("\n")); err != nil || n != len(poison)+5 {
		t.Errorf("%d are set aside, want %d (%v)\n%s", n, len(poison)+5, err, list)
	}
}
