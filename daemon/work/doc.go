// Package work is a granule's way from the spool to its product. A Worker takes
// the granules of one dataset: it reads, checks the grid, chooses what fills,
// analyses, stores, queues to the sinks, looks at products again when their
// neighbours have come, and scores.
//
// A worker does one task after the other, the most urgent first: granules of the
// live lane, products that were reopened because a day in their window came, the
// backfill, and scores. A granule that cannot be used is set aside with one
// sentence that says why; a failure of our own (a full disk, a process that
// cannot be started) leaves the granule where it is, to be tried again. The
// ledger is asked what is due before every task, so whatever a crash cut short is
// taken up again, and a product is stored under a name that never gets other
// bytes.
//
// Package work knows nothing of archives and sinks: granules lie in the spool,
// and products are queued for whoever delivers them.
package work
