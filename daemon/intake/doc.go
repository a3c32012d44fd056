// Package intake brings the granules of datasets from their archives into the
// spool and the ledger. It knows every kind of archive, paces the requests to a
// host, polls on schedule, and decodes every file before it counts as a granule.
//
// It does not know how granules are filled.
package intake
