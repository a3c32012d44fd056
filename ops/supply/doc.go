// Package supply says what the program is made of and whether that may be
// shipped: its bill of materials, the licences of what is linked into it, and
// what is known to be wrong with it.
//
// Everything starts from a built program, which carries the modules that were
// linked into it, so that what is only in go.mod for the tests does not count.
// The same program on the same system gives the same bill, byte for byte.
//
// Package supply is for developers: the daemon does not import it, and a test
// holds that. It reads the licence files at the top of a module, not those of
// single files below it, and it knows nothing of the vulnerabilities of the
// system's libraries: those are the distribution's to mend.
package supply
