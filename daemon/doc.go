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
// A product is stored under a name that never gets other bytes, and in the
// transaction that records it a delivery is queued to every sink. Each sink has
// a dispatcher of its own that works its queue off, the folder of products
// among them: a broker that is away for days delays its own messages, loses
// none, and holds up nothing else.
//
// Most of this is done in rooms that do not know the daemon:
//
//	intake     archives to spool and ledger        work, fill   spool to product
//	outbox     product to sinks                    books        the ledger itself
//	operate    what an operator asks for           pages        what a person sees
//	retrain    models                              onboard      a new dataset
//
// Package daemon has what is left: the configuration and its faults, the wiring
// (daemon.go, rooms.go) and the life of the service (Run, Once, Serve). It contains
// no arithmetic and no file formats.
package daemon
