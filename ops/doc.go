// Package ops is the operator's view of the service: a status page, the same as
// JSON, metrics for Prometheus, health for supervisors, notifications to the
// service manager, alarms by webhook or command, and the finished products.
//
//	/                          state of every dataset, alarms, backlogs, newest products
//	/datasets/NAME             its days, a year a row of months
//	/datasets/NAME/YYYY-MM-DD  the granules of a day
//	/granule?dataset=&name=    maps before and after, uncertainty, flags, history, files
//	/models                    versions, promotions, scores, daily skill
//	/models/VERSION.png        a window that judged a version, as it was filled before and by it
//	/map, /events, /actions/   requests of the scripts of the pages
//	/products/NAME/            its products, as a page or as JSON; ?from=&to=&limit=
//	/products/NAME/latest      leads to the newest
//	/products/...              their files, and the STAC catalogue beside them
//	/status.json /metrics /healthz /readyz
//
// A Server reads: it answers GET and HEAD, serves no file from outside the
// product folder and lists no folder but products. The actions are refused without the
// token of the configuration, and guessing at it is slowed down. It answers to
// its own names only, and listens on loopback unless told otherwise, for it
// knows no users. Pages need nothing from elsewhere and read without a script;
// with one they stay current and let maps be probed.
//
// Package ops does not know where its figures come from. The daemon hands it
// Sources; no netCDF, ledger or model store is touched here.
package ops
