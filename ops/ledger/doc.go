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
// The file is SQLite, so that people can look into it with its own tool. One
// process at a time has it open; another is told which.
//
// Package ledger has no clock and reads no granule: times are given to it,
// and names, paths, hashes and grids are text that it keeps.
package ledger
