// Package fetch finds new satellite granules on archives and brings them into
// the local spool.
//
// A Watcher polls one Archive, copies new objects into a Spool and hands each
// finished granule downstream. A granule is handed on only after its file has
// been synced and renamed into place, so a receiver never sees half a file,
// after validation, and after Deliveries has recorded it, so that it is handed
// on once while the process lives:
//
//	List ─▶ decide ─▶ settled? ─▶ spool ─▶ valid? ─▶ recorded ─▶ handed on
//	          │          wait     resume   set aside   skip if the bytes are known
//	          └─▶ touched, moved, vanished: recorded, nothing is read
//
// The bytes decide whether a granule is new, not names or times: by the hash
// that the archive lists, else by reading. A download that breaks off is
// resumed, by the next process too.
//
// Nothing is lost in a crash. Before the record, the next poll finds the object
// again; after it, the granule is unfinished work in the record, which the
// daemon resumes at the next start. Delivery is therefore at least once.
//
// Read archive.go first (the contract of an archive), then decide.go (from a
// listing to actions, as a pure function) and pass.go (carrying them out);
// transfer.go runs the downloads, spool.go, stream.go and part.go bring the bytes
// in.
//
// Whatever an archive does is bounded: the length of a listing, how slow an
// object may come, how long it holds up others, and how long a poll may make no
// progress before State says so.
//
// Package fetch knows nothing of grids, models or the ledger. To it a granule
// is a file with a name, a size, a time and a hash.
package fetch
