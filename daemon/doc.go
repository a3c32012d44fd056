// Package daemon is the service: it reads the configuration, wires the stages
// together, and starts and stops them.
//
//	archive ──fetch──▶ spool ──ingest──▶ field ──infer──▶ analysis ──▶ store
//	   ▲                 │                                               │
//	simulate          ledger: a granule is a row with a state  ◀─────────┘
//	                     └── outbox: a delivery a sink ──publish──▶ disk, s3, kafka
//
// Each dataset has a watcher that brings new granules into the spool and a
// worker that takes them from there to a product. The ledger connects the two:
// the worker asks it for unfinished granules, so a granule survives any crash and
// none is worked on twice. A granule that cannot be used is set aside with its
// reason in one sentence, and the next one is taken up; a failure of our own (a
// full disk, a process that cannot be started) leaves the granule where it is, to
// be tried again.
//
// A product is stored under a name that never gets other bytes, and in the
// transaction that records it a delivery is queued to every sink. Each sink has
// a dispatcher of its own for its queue, also the folder of products: a broker that
// is away for days delays its own messages, loses none, and holds up nothing else.
//
// Most of this is done in rooms, the packages below this one, which do not import
// it:
//
//	intake     archives to spool and ledger        work, fill   spool to product
//	jobs       a fill as a message                 workers      the same on other machines, by Kafka
//	outbox     product to sinks                    books        opening and rebuilding the ledger
//	operate    operators' commands                 pages        status and web pages
//	retrain    models                              onboard      a proposal for a new dataset
//	supervise  stages and heartbeats               slots        how much is done at a time
//	state      layout of the state folder          quarantine   granules that were set aside
//	gridpin    a grid in the configuration         feed         a simulated producer
//	version    the version of the program
//
// Package daemon itself has the configuration and its faults, the wiring
// (daemon.go, rooms.go) and the life of the service (Run, Once, Serve). It does not
// know arithmetic or file formats.
package daemon
