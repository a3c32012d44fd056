// Package kafka takes products to two Kafka topics.
//
//	<prefix>.data    the NetCDF bytes in parts of at most 900 kB
//	<prefix>.events  one small CloudEvent a product, which says where its parts are
//
// An event is sent after the last part of its product was acknowledged by every
// in-sync replica, and names the partition and the offsets of the parts: a
// reader of an event finds its bytes. A product whose bytes do not have the
// SHA-256 it claims is never announced.
//
// Order and compaction. Every message has the key dataset/granule. Events are
// put into the partition of their dataset, not of their key, so that the events
// of a dataset are read in the order in which they were sent; the events topic
// is compacted, so that the latest revision of every granule stays for good.
// Parts are spread by key, so that the data of one dataset uses all partitions.
// The number of partitions of the events topic must not change while there are
// readers.
//
// A retraction is a tombstone with CloudEvents headers: it tells those who
// listen which revision must not be used and why, and lets compaction forget
// the granule. A revision that was already superseded is retracted under a key
// of its own, because a tombstone under the granule's key would forget its
// successor too.
//
// Repetition. The sink reads back the events topic before it first writes: a
// revision that is announced is not sent again, also after a crash, and one
// older than the announced one is never made current. A part whose
// acknowledgement was lost is repeated under the same producer id and sequence
// number, which the broker recognises. Only an event may be there twice, after
// a lost acknowledgement or where a request of a killed process arrives after
// its successor has read back: it carries the same id, and readers drop it by
// that.
//
// Owner of the topics. A message under a key of its own, which no product has,
// names the state that publishes here and its epoch; the events topic keeps the
// latest for good, as it does not keep tombstones, nor offsets of a group, and
// no other topic has to be made or allowed. Readers pass over its ce_type.
//
// Package kafka knows nothing of NetCDF, of the queue of deliveries, nor of
// when to try again: it tries for a bounded time and returns the error. It
// takes for granted that one process at a time publishes a dataset.
package kafka
