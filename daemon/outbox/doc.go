// Package outbox takes stored products to every sink: the folder of products, a
// bucket, a Kafka cluster.
//
// The ledger holds the deliveries that are due, in the transaction that recorded
// the product; a dispatcher for each sink works its queue off, none waiting for
// another. A broker that is away for days delays its own messages, loses none,
// and holds up nothing else. Nothing is delivered to a place that belongs to
// another state, and a sink is compared with the ledger before the first
// delivery, so that no revision gets two contents.
//
// It knows nothing of how products are made.
package outbox
