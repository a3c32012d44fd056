// Package daemon is the service: it wires the stages together and owns their
// life.
//
//	archive ──fetch──▶ spool ──ingest──▶ field ──infer──▶ analysis ──▶ store
//	   ▲                 │                                               │
//	simulate          ledger: a granule is a row with a state  ◀─────────┘
//	                     └── outbox: a delivery a sink ──publish──▶ disk, s3, kafka
//
// Each dataset has a watcher that brings new granules into the spool and a
// worker that takes them from there to a product. The ledger is what connects
// the two: the worker asks it what is unfinished, so a granule survives any
// crash and none is worked on twice. A granule that cannot be used is set
// aside with one sentence that says why, and the next one is taken up; a
// failure of our own (a full disk, a process that cannot be started) leaves
// the granule where it is, to be tried again.
//
// A worker does one errand after the other, the most urgent first: granules of
// the live lane, products that were reopened because a day in their window came,
// the backfill, and scores of what was filled. A product is made at once from the
// past, and anew when the days after it have come and that changes it.
//
// A product is stored under a name that never gets other bytes, and in the
// transaction that records it a delivery is queued to every sink. Each sink has
// a dispatcher of its own that works its queue off, the folder of products
// among them: a broker that is away for days delays its own messages, loses
// none, and holds up nothing else.
//
// Package daemon is the only one that knows the others; wire.go converts
// between them. It contains no arithmetic and no file formats.
package daemon
