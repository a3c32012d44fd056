package consumer_test

import (
	"log/slog"
	"testing"

	"lacuna/publish/kafka"
	"lacuna/publish/kafka/brokertest"
)

// Brokers create topics by themselves unless told otherwise, when somebody asks for
// one: with the settings of the broker, by which events would be lost.
func TestASinkMakesItsTopicsWhereBrokersWouldToo(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Java process")
	}
	r := &real{Cluster: brokertest.Start(t, brokertest.Options{Properties: map[string]string{"auto.create.topics.enable": "true"}})}
	cfg, _ := r.topics(t, "fresh")
	cfg.Topics.Create = false
	sink, err := kafka.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if err := sink.Check(t.Context()); err == nil {
		t.Error("a sink that must not make its topics found some")
	}
	cfg.Topics.Create = true
	mustPublish(t, newSink(t, cfg), newProduct(t, "sea", "a", 1, 1000)) // it refuses topics with other settings
}
