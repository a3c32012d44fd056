// Package operate is the operator's side of the service: what became of a granule
// and why, what would be done next, what is set aside and taken up again, which
// products are made anew, backfilled, fetched or published again, and whether
// everything that the configuration names can be reached.
//
// An operation that asks for work is one transaction in the ledger, or a file in
// the state folder: the daemon that runs does it, or the next one. Package operate
// does not know how granules are filled.
package operate
