// Package work is a granule's way from the spool to its product. The Worker of a
// dataset reads each granule, checks its grid, chooses the method, analyses, stores
// the product and queues it to the sinks; it analyses products again when their
// neighbours have come, and scores them.
//
// A worker does one task after the other, the most urgent first: granules of the
// live lane, products that were reopened because a day in their window came, the
// backfill, and scores. A granule that cannot be used is set aside with its
// reason in one sentence; a failure of our own (a full disk, a process that cannot
// be started) leaves the granule where it is, to be tried again. The worker asks
// the ledger for the next task each time, so work that a crash cut short is taken
// up again, and a product is stored under a name that never gets other bytes.
//
// A time of which the archive has no granule is an absence: the worker records it
// when nothing else waits, and takes it for a granule like its neighbours in which
// nothing was observed. The granule is the next revision, should it come.
//
// Package work does not know archives and sinks: granules lie in the spool, and
// products are queued for the dispatchers.
package work
