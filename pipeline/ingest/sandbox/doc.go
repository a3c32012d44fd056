// Package sandbox takes from a process everything but the descriptors it has:
// files, the network, other programs and other processes.
//
// A process that is started with Mark in its environment is confined in two
// steps. Before the Go runtime has a second thread, Landlock takes away every
// file and every connection, so that no thread is ever without it; a library
// that the loader has mapped by then stays. Once the program has set itself
// up, Restrict adds a list of the system calls that computing and writing to
// an open descriptor need, for all threads at once. Either is enough to keep
// a hostile file from reading another; they fail in different ways.
//
// A kernel without one of the two leaves the other. State says which of them
// hold, and Probe tries the forbidden operations, so that an operator can be
// told.
//
// Package sandbox knows nothing of NetCDF, and a confined process has no way
// back.
package sandbox
