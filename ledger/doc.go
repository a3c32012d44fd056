// Package ledger remembers every granule and how far the work on it has come,
// so that a restart loses nothing and does nothing twice.
//
// A granule is a row with a state and a history:
//
//	discovered ─▶ fetched ─▶ filled ─▶ stored ─▶ announced
//	     │           │ ▲        │
//	     └───────────┴─┼────────┴──▶ quarantined, with the reason
//	                   └───────────────────┘ an operator tries again
//
// Every step is one transaction that is on the disk when the call returns. A
// step that was taken before is no error and leaves no second trace, so that
// work can be repeated after a crash; any other step against the arrows is
// refused. The history is only ever appended to. When an archive replaces a
// file, the new content is a new row with the next revision; the old one
// stays.
//
// A revision may also be the same content made anew. Placing a granule, which is
// recording its times, reopens the products that have it in their window; such
// a reopening is due when no other neighbour has come for a while, and ends in a
// revision, or unchanged. Every new content is due to be scored, once.
//
// An absence is a row for a granule that the archive does not have: its product
// is made, stored and delivered like any other, and the granule, should it come,
// is its next revision.
//
// Beside the granules stand the objects of the archives: which content each
// name was last seen with, under which tag and hash, and whether it is still
// listed. Archives move and copy files, so several objects may hold one
// granule.
//
// A stored product is queued for every sink in the same transaction: a
// publication is a revision that receivers were promised, a delivery takes it,
// or its retraction, to one sink. Deliveries wait, in order per dataset, until
// they are made, or are set aside with the reason.
//
// The file is SQLite, so that people can look into it with its own tool. One
// process at a time works on it; another is told which, and may Join it to read
// or to leave a request.
//
// Package ledger has no clock and reads no granule: times are given to it,
// and names, paths, hashes and grids are text that it keeps.
package ledger
