package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/fetch"
	"lacuna/publish/kafka"
)

func TestASecretFileThatOthersMayReadKeepsTheDaemonFromStarting(t *testing.T) {
	for key, name := range map[string]func(*Config, string){
		"token_file": func(c *Config, path string) { c.Web.TokenFile = path },
		"publish.kafka.sasl.password_file": func(c *Config, path string) {
			c.Publish.Kafka = &outbox.Kafka{Config: kafka.DefaultConfig()}
			c.Publish.Kafka.Brokers = []string{"127.0.0.1:9"}
			c.Publish.Kafka.SASL = kafka.SASL{Mechanism: "plain", User: "u", PasswordFile: path}
		},
	} {
		b := newBench(t)
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte("a secret that nobody guesses\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		name(&b.cfg, path)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a daemon that starts runs until then
		err := b.daemon(t).Run(ctx)
		cancel()
		if !errors.Is(err, fetch.ErrExposed) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "0666") {
			t.Errorf("Run() with an open %s = %v", key, err)
		}
	}
}
