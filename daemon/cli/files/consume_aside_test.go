package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/publish/kafka"

	kafkago "github.com/segmentio/kafka-go"
)

// sendEvent writes an event that no sink has written, as of an hour ago.
func sendEvent(t *testing.T, broker, id string, e kafka.Event) {
	t.Helper()
	value, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	w := &kafkago.Writer{Addr: kafkago.TCP(broker), Topic: "lacuna.events", BatchSize: 1, RequiredAcks: kafkago.RequireAll, Balancer: &kafkago.Hash{}}
	defer w.Close()
	err = w.WriteMessages(t.Context(), kafkago.Message{
		Key: []byte("sea/x"), Value: value, Time: time.Now().Add(-time.Hour),
		Headers: []kafkago.Header{{Key: "ce_id", Value: []byte(id)}, {Key: "ce_type", Value: []byte(kafka.TypePublished)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConsumeSetsAsideWhatCannotBeHadAndGoesOn(t *testing.T) {
	broker, sink := kafkaSink(t)
	dir := t.TempDir()
	if err := sink.Publish(t.Context(), kafkaProduct(t, "a", 1, "first")); err != nil {
		t.Fatal(err)
	}
	beyond := kafka.Event{
		Dataset: "sea", Granule: "x", Revision: 1, File: kafka.File{Name: "x_l4.nc", Size: 1, SHA256: strings.Repeat("0", 64)},
		Data: kafka.Placement{Topic: "lacuna.data", LastOffset: 1 << 40, Parts: 1},
	}
	sendEvent(t, broker, "sea/x/r1\nlacuna: all is well", beyond)
	hostile := beyond
	hostile.File.Name = "../../x_l4.nc"
	sendEvent(t, broker, "hostile", hostile)
	if err := sink.Publish(t.Context(), kafkaProduct(t, "b", 1, "other")); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := consume(t, "--brokers", broker, "--to", dir, "--exec", "true")
	pathA, pathB := filepath.Join(dir, "sea", "a_l4.nc"), filepath.Join(dir, "sea", "b_l4.nc")
	if err != nil || !strings.Contains(stdout, pathA) || !strings.Contains(stdout, pathB) {
		t.Fatalf("consume: %v, printed %q and %q", err, stdout, stderr)
	}
	if n := strings.Count(stderr, "lacuna: cannot be had: "); n != 2 || strings.Contains(stderr, "\nlacuna: all is well") {
		t.Errorf("consume said %q, want the two that cannot be had", stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, asideFile))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]asideLine{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var one asideLine
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		found[one.ID] = one
	}
	x, h := found["sea/x/r1\nlacuna: all is well"], found["hostile"]
	if !strings.Contains(x.Reason, "the partition ends before") || x.Granule != "x" || !strings.Contains(h.Reason, "which cannot be one") || len(found) != 2 {
		t.Errorf("set aside are %+v", found)
	}
	// Another start begins behind them.
	if _, stderr, err := consume(t, "--brokers", broker, "--to", dir); err != nil || stderr != "" {
		t.Errorf("the second start: %v, %q", err, stderr)
	}
}

func TestConsumeTakesNamesThatFileSystemsDoNot(t *testing.T) {
	broker, sink := kafkaSink(t)
	dir := t.TempDir()
	long := kafkaProduct(t, strings.Repeat("海", 100), 1, "first") // 300 bytes
	odd := kafkaProduct(t, "zero\x00granule"+strings.Repeat("g", 200_000), 1, "second")
	odd.Name = "odd_l4.nc"
	if err := sink.Publish(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if err := sink.Publish(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := consume(t, "--brokers", broker, "--to", dir, "--exec", `cat "$LACUNA_FILE"`)
	if err != nil || !strings.Contains(stdout, "first") || !strings.Contains(stdout, "second") {
		t.Fatalf("consume: %v, printed %.300q and %q", err, stdout, stderr)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "sea", "海*.nc"))
	if len(files) != 1 {
		t.Fatalf("the folder has %q", files)
	}
	event, err := os.ReadFile(files[0] + ".json")
	if err != nil || !strings.Contains(string(event), `"name": "`+long.Name+`"`) {
		t.Errorf("the whole name is not beside the file: %s, %v", event, err)
	}
	long.Why = "sensor fault"
	if err := sink.Retract(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if _, _, err := consume(t, "--brokers", broker, "--to", dir); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "sea", "海*")); len(left) != 0 {
		t.Errorf("after the retraction the folder has %q", left)
	}
}

func TestTheListOfWhatWasSetAsideIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, asideFile)
	if err := os.WriteFile(path, make([]byte, asideBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	b := inbox{dir: dir, stderr: &strings.Builder{}}
	if err := b.setAside(asideLine{ID: strings.Repeat("é", 100_000), Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2000 {
		t.Errorf("the list has %v, %v", info, err)
	}
	if old, err := os.Stat(filepath.Join(dir, asideOldFile)); err != nil || old.Size() != asideBytes+1 {
		t.Errorf("the old list has %v, %v", old, err)
	}
}
