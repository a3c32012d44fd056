// Package powercut is a disk whose power can be cut afterwards: a file system in
// memory that keeps a log of every change, and makes from the log what could be on
// a real disk had the power gone at any moment.
//
// A disk promises no more than POSIX. The bytes of a file last once the file was
// synced, a name once its folder was, a folder's own name once the folder above
// was. Of all else any part may be there or not: pages of a write, a rename
// without the bytes of the file, or bytes without a name. Two rules make the rest
// legal: changes of one name happen in their order, and a rename is whole or not
// at all. Real file systems promise more, each something else.
//
// It is for tests, mounted by FUSE, which needs Linux, /dev/fuse and either root
// or fusermount3. It knows nothing of what the files hold.
package powercut
