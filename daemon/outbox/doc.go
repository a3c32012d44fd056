// Package outbox delivers stored products to every sink: the folder of products,
// a bucket, a Kafka cluster.
//
// The transaction that records a product also queues its deliveries; every sink
// has a dispatcher of its own, and none waits for another. A broker that is away
// for days delays its own messages, loses none, and holds up nothing else.
// Nothing is delivered to a place that belongs to another state, and a sink is
// compared with the ledger before the first delivery, so that no revision gets
// two contents.
//
// It does not know how products are made.
package outbox
