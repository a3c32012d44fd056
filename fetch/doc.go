// Package fetch finds new satellite granules on archives and brings them into
// the local spool.
//
// A Watcher polls one Archive, copies what it has not had before into a Spool
// and hands each finished granule downstream. A granule is handed on only
// after its file has been synced and renamed into place, so a receiver never
// sees half a file, and only after Deliveries has recorded it, so that it is
// handed on once while the process lives:
//
//	List ─▶ seen? ─▶ name fit? ─▶ settled? ─▶ spool ─▶ recorded ─▶ handed on
//	         skip      problem       wait     problem     skip if same bytes
//
// Nothing is lost in a crash. Before the record, the next poll finds the
// object again; after it, the granule is unfinished work in the record, which
// whoever keeps the record takes up again at the next start. Delivery is
// therefore at least once.
//
// Package fetch knows nothing of grids, models or the ledger. To it a granule
// is a file with a name, a size, a time and a hash.
package fetch
