// Package ops is what the operator sees of the service: a status page, the
// same as JSON, metrics for Prometheus, health for supervisors, word to the
// service manager, and the finished products to look at.
//
// A Server only ever reads: it answers GET and HEAD, serves no file from
// outside the product folder and lists no folder. It listens on loopback
// unless told otherwise, for it knows no users.
//
// Package ops does not know where its figures come from. The daemon hands it
// a function that returns a Status.
package ops
