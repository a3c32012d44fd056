// Package operate is the operator's side of the service: the story of a granule,
// the plan of the next work, the quarantine, requests to make, backfill, fetch or
// publish again, and the check that everything in the configuration can be
// reached.
//
// A request for work is one transaction in the ledger, or one file in the state
// folder: the running daemon does the work, or the next one to start. Package
// operate does not know how granules are filled.
package operate
