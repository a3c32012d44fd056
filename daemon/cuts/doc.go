// Package cuts holds the tests that cut the power of a whole service: its commands
// run as processes on a disk of package powercut, with an archive and a broker
// outside of it, and from the log of that disk the service is started again as of
// many moments.
//
// It has no code outside of tests.
package cuts
