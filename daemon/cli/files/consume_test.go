package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/embedded"
)

// consume runs lacuna consume --once.
func consume(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return clitest.Run(t, consumeCommand(), append(args, "--once")...)
}

// kafkaSink starts an in-memory broker with a sink.
func kafkaSink(t *testing.T) (broker string, sink *kafka.Sink) {
	t.Helper()
	b, err := embedded.New(embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := kafka.DefaultConfig()
	cfg.Brokers = []string{b.Addr()}
	sink, err = kafka.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	return b.Addr(), sink
}

func kafkaProduct(t *testing.T, granule string, revision int, content string) publish.Product {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(content))
	return publish.Product{
		Dataset: "sea", Granule: granule, Name: granule + "_l4.nc", Revision: revision, Time: time.Unix(0, 0), Created: time.Unix(0, 0),
		Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Mode: publish.NearRealTime,
	}
}

func TestConsumeKeepsAFolderLikeTheTopic(t *testing.T) {
	broker, sink := kafkaSink(t)
	dir := t.TempDir()
	a1, a2, b := kafkaProduct(t, "a", 1, "first"), kafkaProduct(t, "a", 2, "second"), kafkaProduct(t, "b", 1, "other")
	for _, p := range []publish.Product{a1, b, a2} {
		if err := sink.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, err := consume(t, "--brokers", broker, "--to", dir)
	pathA, pathB := filepath.Join(dir, "sea", "a_l4.nc"), filepath.Join(dir, "sea", "b_l4.nc")
	if want := pathA + "\n" + pathB + "\n" + pathA + "\n"; err != nil || stdout != want || stderr != "" {
		t.Fatalf("consume: %v, printed %q and %q, want %q", err, stdout, stderr, want)
	}
	if got, _ := os.ReadFile(pathA); string(got) != "second" {
		t.Errorf("the file is %q, want that of the second revision", got)
	}
	if event, _ := os.ReadFile(pathA + ".json"); !strings.Contains(string(event), `"revision": 2`) {
		t.Errorf("the event beside the file is %s", event)
	}
	// A retracted revision that was already replaced leaves its successor.
	a1.Why, b.Why = "old", "sensor fault"
	for _, p := range []publish.Product{a1, b} {
		if err := sink.Retract(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	_, stderr, err = consume(t, "--brokers", broker, "--to", dir)
	if err != nil || !strings.Contains(stderr, "retracted "+pathB+": sensor fault") {
		t.Errorf("consume: %v, said %q, want that b is retracted", err, stderr)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "sea", "*"))
	if want := []string{pathA, pathA + ".json"}; strings.Join(left, " ") != strings.Join(want, " ") {
		t.Errorf("the folder has %q, want %q", left, want)
	}
	// A group that begins again does not bring old revisions back.
	if _, _, err = consume(t, "--brokers", broker, "--to", dir, "--group", "again"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(pathA); string(got) != "second" {
		t.Errorf("the file is %q after reading again, want that of the second revision", got)
	}
}

func TestConsumeRunsTheCommandAgainAfterItFailed(t *testing.T) {
	broker, sink := kafkaSink(t)
	dir := t.TempDir()
	for _, p := range []publish.Product{kafkaProduct(t, "a", 1, "first"), kafkaProduct(t, "b", 1, "other")} {
		if err := sink.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	command := `echo "$LACUNA_EVENT $LACUNA_DATASET $LACUNA_GRANULE r$LACUNA_REVISION $(cat "$LACUNA_FILE")"; grep -q '"revision":1' && ! [ $LACUNA_GRANULE = b ]`
	stdout, _, err := consume(t, "--brokers", broker, "--to", dir, "--exec", command)
	if err == nil || !strings.Contains(err.Error(), "b_l4.nc: exit status 1") || !strings.Contains(stdout, "published sea a r1 first\n") {
		t.Errorf("consume: %v, printed %q, want the failure of the second command", err, stdout)
	}
	stdout, _, err = consume(t, "--brokers", broker, "--to", dir, "--exec", "echo again $LACUNA_GRANULE")
	if err != nil || !strings.HasSuffix(stdout, "again b\n") || strings.Contains(stdout, "again a") {
		t.Errorf("consume: %v, printed %q, want the second product alone", err, stdout)
	}
}

func TestConsumeSaysWhatIsMissing(t *testing.T) {
	for want, args := range map[string][]string{
		"--to DIR is required":            {"--brokers", "localhost:9092"},
		"brokers is empty":                {"--to", t.TempDir()},
		`from is "yesterday"`:             {"--to", t.TempDir(), "--brokers", "localhost:9092", "--from", "yesterday"},
		"sasl.password_file is empty":     {"--to", t.TempDir(), "--brokers", "localhost:9092", "--sasl", "plain", "--sasl-user", "u"},
		"tls names files but":             {"--to", t.TempDir(), "--brokers", "localhost:9092", "--tls-ca", "ca.pem"},
		`must be host:port`:               {"--to", t.TempDir(), "--brokers", "localhost"},
		`sasl.mechanism is "kerberos"`:    {"--to", t.TempDir(), "--brokers", "localhost:9092", "--sasl", "kerberos"},
		"sasl has a user or password but": {"--to", t.TempDir(), "--brokers", "localhost:9092", "--sasl-user", "u"},
	} {
		_, _, err := consume(t, args...)
		var usage cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("consume %q: %v, want a usage error with %q", args, err, want)
		}
	}
}
