package workers

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func TestConfigFaultsAreNamed(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Config)
		want string // part of the message; empty: valid
	}{
		{name: "as it is"},
		{name: "local needs no brokers", edit: func(c *Config) { *c = DefaultConfig() }},
		{name: "another type", edit: func(c *Config) { c.Type = "slurm" }, want: `type is "slurm", must be local or kafka`},
		{name: "no brokers", edit: func(c *Config) { c.Brokers = nil }, want: "brokers is empty"},
		{name: "no prefix", edit: func(c *Config) { c.Prefix = "" }, want: "prefix is empty"},
		{name: "a short session", edit: func(c *Config) { c.Session = time.Millisecond }, want: "session is 1ms"},
		{name: "no try", edit: func(c *Config) { c.Tries = 0 }, want: "tries is 0"},
		{name: "nothing under way", edit: func(c *Config) { c.InFlight = 0 }, want: "in_flight is 0"},
		{name: "no partition", edit: func(c *Config) { c.Partitions = 0 }, want: "partitions is 0"},
		{name: "swept at once", edit: func(c *Config) { c.Keep = time.Minute }, want: "keep is 1m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			c.Type, c.Prefix, c.Brokers = Kafka, "lacuna", []string{"kafka:9092"}
			if tt.edit != nil {
				tt.edit(&c)
			}
			err := c.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

func TestAWordAloneIsTheType(t *testing.T) {
	for text, want := range map[string]Config{
		"kafka":                       {Type: Kafka, Tries: 3},
		"local":                       {Type: Local, Tries: 3},
		"{type: kafka, tries: 7}":     {Type: Kafka, Tries: 7},
		"{tries: 7}":                  {Type: Local, Tries: 7},
		"{type: kafka, trys: 7}":      {},
		"{type: kafka, session: 30s}": {Type: Kafka, Tries: 3, Session: 30 * time.Second},
	} {
		var c Config
		err := yaml.UnmarshalWithOptions([]byte(text), &c, yaml.Strict())
		if want.Type == "" {
			if err == nil {
				t.Errorf("%s: an unknown key was taken", text)
			}
			continue
		}
		if err != nil || c.Type != want.Type || c.Tries != want.Tries || c.InFlight != DefaultConfig().InFlight || want.Session != 0 && c.Session != want.Session {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}
