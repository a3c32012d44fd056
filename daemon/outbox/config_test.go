package outbox

import (
	"log/slog"
	"strings"
	"testing"

	"lacuna/internal/convert"
	"lacuna/publish/kafka"
	"lacuna/publish/s3"
)

func TestSinksStandInTheLedgerByTheNamesTheyHave(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Kafka = &Kafka{Config: kafka.DefaultConfig()}
	cfg.Kafka.Brokers = []string{"127.0.0.1:1"}
	cfg.S3 = &S3{Config: s3.Config{Endpoint: "http://127.0.0.1:1", Bucket: "b", Prefix: "p/q"}}
	o := &Outbox{log: slog.New(slog.DiscardHandler)}
	sinks, err := o.open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	names := convert.Each(sinks, func(s Placed) string { return s.Name() })
	if got := cfg.SinkNames(); strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("SinkNames() = %v, the sinks are %v", got, names)
	}
}
