// Package ops is what the operator sees of the service: a status page, the
// same as JSON, metrics for Prometheus, health for supervisors, word to the
// service manager and to those who are called when something is wrong, and the
// finished products to look at.
//
//	/                          how every dataset is, alarms, what waits, newest products
//	/datasets/NAME             its days, a year a row of months
//	/datasets/NAME/YYYY-MM-DD  the granules of a day
//	/granule?dataset=&name=    maps before and after, uncertainty, flags, story, files
//	/models                    versions, promotions, scores, daily skill
//	/map, /events, /actions/   what the pages ask for
//	/status.json /metrics /healthz /readyz /products/
//
// A Server reads: it answers GET and HEAD, serves no file from outside the
// product folder and lists no folder. The two actions are refused without the
// token of the configuration, and guessing at it is slowed down. It answers to
// its own names only, and listens on loopback unless told otherwise, for it
// knows no users. Pages need nothing from elsewhere and read without a script;
// with one they follow what happens and let maps be probed.
//
// Package ops does not know where its figures come from. The daemon hands it
// Sources; no netCDF, ledger or model store is touched here.
package ops
