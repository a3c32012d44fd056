// Package trusted says which libraries may be loaded and which programs may be
// started: those that nobody can change but root and the user of this process.
// Whoever can write the file, or a folder on the way to it, decides what runs as
// this user.
//
// A path is followed link by link. Every folder that is passed, every link and
// the file at the end must belong to root or to the user, and be writable by
// nobody else, so that others cannot change a checked file before it is loaded.
// A folder with the sticky bit, such as /tmp, passes: others may add files to
// it, which belong to them, but neither replace nor rename those of the user.
//
// A group that may write counts as others, except the user's own private group:
// distributions that give each user one set the umask to 002, and every
// checkout there is writable by that group. It is private if it is the user's
// primary group, has no other member in /etc/group and is nobody else's primary
// group in /etc/passwd; one that these files do not know is not. The write mask
// of an access control list shows in the group's bits, and such a list is never
// private.
//
// Package trusted knows nothing of the content of a file, and does not see the
// libraries that a trusted one loads by itself.
package trusted
