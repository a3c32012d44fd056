package kafka

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func TestConfigSaysEverythingThatIsWrong(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Config)
		want string // part of the message; empty: valid
	}{
		{name: "defaults"},
		{"no brokers", func(c *Config) { c.Brokers = nil }, "brokers is empty"},
		{"broker without port", func(c *Config) { c.Brokers = []string{"kafka"} }, `brokers has "kafka"`},
		{"prefix with a space", func(c *Config) { c.Prefix = "my topics" }, "prefix is"},
		{"no source", func(c *Config) { c.Source = "" }, "source is empty"},
		{"unknown compression", func(c *Config) { c.Compression = "brotli" }, `compression is "brotli"`},
		{"large parts", func(c *Config) { c.PartBytes = 1_000_000 }, "part_bytes is 1000000"},
		{"small parts", func(c *Config) { c.PartBytes = 1 }, "part_bytes is 1"},
		{"no timeout", func(c *Config) { c.Timeout = 0 }, "timeout is 0s"},
		{"no partitions", func(c *Config) { c.Topics.Partitions = 0 }, "topics.partitions is 0"},
		{"no replicas", func(c *Config) { c.Topics.Replication = 0 }, "topics.replication is 0"},
		{"no retention", func(c *Config) { c.Topics.DataRetention = time.Second }, "topics.data_retention is 1s"},
		{"no tombstones", func(c *Config) { c.Topics.Tombstones = 0 }, "topics.tombstones is 0s"},
		{"key without certificate", func(c *Config) { c.TLS.Enabled = true; c.TLS.KeyFile = "k" }, "go together"},
		{"files without TLS", func(c *Config) { c.TLS.CAFile = "ca" }, "tls.enabled is false"},
		{"user without mechanism", func(c *Config) { c.SASL.User = "u" }, "no mechanism"},
		{"mechanism without user", func(c *Config) { c.SASL.Mechanism = "plain" }, "sasl.user is empty"},
		{"two things at once", func(c *Config) { c.Timeout = 0; c.Prefix = "" }, "timeout is 0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig("localhost:9092")
			if tt.edit != nil {
				tt.edit(&c)
			}
			err := c.Validate()
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Validate() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

func TestConfigIsReadFromYAML(t *testing.T) {
	cfg := DefaultConfig()
	text := `
brokers: [a:9092, b:9092]
prefix: ocean
tls: {enabled: true, ca_file: ca.pem}
sasl: {mechanism: scram-sha-512, user: u, password_file: p}
topics: {replication: 3, data_retention: 48h}
`
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(&cfg); err != nil {
		t.Fatal(err)
	}
	if len(cfg.Brokers) != 2 || cfg.Prefix != "ocean" || !cfg.TLS.Enabled || cfg.SASL.User != "u" || cfg.Topics.Replication != 3 ||
		cfg.Topics.DataRetention != 48*time.Hour || cfg.Compression != "zstd" || cfg.Topics.Partitions != 4 {
		t.Errorf("read %+v", cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestFilesThatAreNamedButUnusableAreReported(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Connection{
		"has no certificate in PEM": {TLS: TLS{Enabled: true, CAFile: empty}},
		"read tls.ca_file":          {TLS: TLS{Enabled: true, CAFile: empty + "x"}},
		"tls.cert_file":             {TLS: TLS{Enabled: true, CertFile: empty, KeyFile: empty}},
		"read sasl.password_file":   {SASL: SASL{Mechanism: "plain", User: "u", PasswordFile: empty + "x"}},
	} {
		if _, err := c.Open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open() = %v, want a message with %q", err, want)
		}
	}
}
