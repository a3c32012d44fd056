// Package sandbox takes from a process everything but the descriptors it has:
// files, the network, other programs and other processes.
//
// A process that is started with Mark in its environment is confined in two
// steps. Before the Go runtime has a second thread, Landlock forbids to open
// files and connections, so that the rule covers every thread; libraries that
// the loader has mapped by then stay mapped. Once the program is initialised,
// Restrict limits all threads to the system calls that are needed to compute
// and to write to an open descriptor. Either step keeps a hostile file from
// reading another; they fail in different ways.
//
// With Template in its environment too, a process stops between the two steps and makes
// copies of itself, each of which goes on to main.
//
// A kernel without one of the two leaves the other. State says which of them
// hold, and Probe tries the forbidden operations, so that an operator can be
// told.
//
// Package sandbox knows nothing of NetCDF, and a confined process has no way
// back.
package sandbox
