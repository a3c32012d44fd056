// Package chaos holds the campaign against a whole service: a daemon and its
// workers run as processes, with archives on FTP and S3, a broker, and disks that
// can fail, while nemeses kill, stop, fill, tear and mislead them, one or two at a
// time and as a seed says. After each the service must be back at its normal lag,
// and a checker compares every place that tells of a product.
//
// It has no code outside of tests.
package chaos
