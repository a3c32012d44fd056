// Package intake brings the granules of datasets from their archives into the
// spool and the ledger: which kind of archive, with which manners, watched when,
// and every file decoded before it counts as a granule.
//
// It knows nothing of what becomes of a granule afterwards.
package intake
