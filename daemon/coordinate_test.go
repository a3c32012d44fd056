package daemon

import (
	"strings"
	"testing"
)

func TestWorkersTakeWhatTheyLackFromPublishing(t *testing.T) {
	const publishing = "publish: {kafka: {brokers: ['kafka:9092'], prefix: sea}}\n"
	tests := []struct {
		name, text string
		brokers    string
		prefix     string
		shared     string
		want       string // part of the message; empty: valid
	}{
		{"a word alone", publishing + "workers: kafka\n", "kafka:9092", "sea", "var/shared", ""},
		{"its own", publishing + "workers: {type: kafka, brokers: ['other:9092'], prefix: own, shared_dir: /mnt/sea}\n", "other:9092", "own", "/mnt/sea", ""},
		{"no brokers at all", "workers: kafka\n", "", "", "", "brokers is empty"},
		{"brokers in memory", "publish: {kafka: {embedded: true}}\nworkers: kafka\n", "", "", "", "workers need brokers of their own"},
		{"another type", "workers: slurm\n", "", "", "", `type is "slurm"`},
		{"none", "", "", "lacuna", "var/shared", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := parseConfig("lacuna.yaml", []byte(validConfig+tt.text))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want a message with %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if w := cfg.workers(); strings.Join(w.Brokers, " ") != tt.brokers || w.Prefix != tt.prefix || w.SharedDir != tt.shared {
				t.Errorf("%+v", w)
			}
		})
	}
}
