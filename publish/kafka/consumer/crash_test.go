package consumer_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/publish/kafka/consumer"

	"github.com/twmb/franz-go/pkg/kfake"
)

// childBroker names the broker for a test process that is to be a consumer.
const childBroker = "LACUNA_TEST_CONSUMER_BROKER"

func TestMain(m *testing.M) {
	if broker := os.Getenv(childBroker); broker != "" {
		if err := consumeAsChild(broker, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// consumeAsChild writes a line for every product into dir/log until it is
// killed.
func consumeAsChild(broker, dir string) error {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cfg := consumer.DefaultConfig()
	cfg.Brokers, cfg.Dir, cfg.SessionTimeout = []string{broker}, dir, 300*time.Millisecond
	c, err := consumer.New(cfg, func(_ context.Context, p consumer.Product) error {
		content, err := p.Bytes()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(log, "%s %x\n", p.ID, sha256.Sum256(content))
		return err
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return c.Run(context.Background())
}

// A consumer that is killed at any moment goes on where it was: every product
// is handed over, in order, and only the one in hand may come twice.
func TestKilledConsumerGoesOnWhereItWas(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	broker := fakeBroker(t, kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "100"}))
	sink := newSink(t, sinkConfig(broker.ListenAddrs()))
	var want []string
	for i := range 30 {
		p := newProduct(t, "sea", fmt.Sprintf("%02d", i), 1, 2_000_000)
		mustPublish(t, sink, p)
		want = append(want, p.ID()+" "+p.SHA256)
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	handed := func() []string {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
	}
	kills := 0
	for deadline := time.Now().Add(patience); len(firsts(handed())) < len(want); kills++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d products after %d kills", len(firsts(handed())), len(want), kills)
		}
		child := exec.Command(os.Args[0], dir)
		child.Env = append(os.Environ(), childBroker+"="+broker.ListenAddrs()[0])
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		before := len(handed())
		for end := time.Now().Add(time.Minute); len(handed()) < before+1 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(random.IntN(40_000)) * time.Microsecond)
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	all := handed()
	if got := firsts(all); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("handed over in the order\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if repeated := len(all) - len(want); repeated > kills {
		t.Errorf("%d products came again after %d kills, want at most one each", repeated, kills)
	}
	t.Logf("%d kills, %d repetitions", kills, len(all)-len(want))
}

// firsts drops repetitions and lines that are not about a product.
func firsts(lines []string) (of []string) {
	seen := map[string]bool{"": true}
	for _, line := range lines {
		if !seen[line] {
			seen[line] = true
			of = append(of, line)
		}
	}
	return of
}
