// Package supply lists the parts of the program and checks whether they may be
// shipped: its bill of materials, the licences of the linked modules, and known
// vulnerabilities.
//
// Everything starts from a built program, which carries the modules that were
// linked into it, so that modules for the tests only do not count. The same
// program on the same system gives the same bill, byte for byte.
//
// Package supply is for developers: the daemon does not import it, and a test
// holds that. It reads the licence files at the top of a module, not those of
// single files below it, and it knows nothing of the vulnerabilities of the
// system's libraries: the distribution mends those.
package supply
