package ledger

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Holder names the process that works on a ledger, without touching its lock.
// running is false where none does.
func Holder(path string) (name string, running bool) {
	f, err := os.Open(path + ".lock")
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false
	}
	name, ended := holder(f)
	if locked, known := kernelLocks(info); known {
		return name, locked
	}
	// Without the kernel's list: the process named in the file, if it runs.
	return name, strings.HasPrefix(name, "process ") && !ended
}

// kernelLocks reports whether a process holds a lock on a file, by /proc/locks;
// known is false where that cannot be read.
func kernelLocks(info os.FileInfo) (locked, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, false
	}
	list, err := os.Open("/proc/locks")
	if err != nil {
		return false, false
	}
	defer list.Close()
	inode := fmt.Sprintf(":%d", stat.Ino)
	lines := bufio.NewScanner(list)
	for lines.Scan() { // such as: 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
		fields := strings.Fields(lines.Text())
		if len(fields) >= 6 && fields[1] == "FLOCK" && strings.HasSuffix(fields[5], inode) {
			return true, true
		}
	}
	return false, lines.Err() == nil
}
