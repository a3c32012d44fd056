package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// allowedHere returns calls that only this machine has: older forms, which
// glibc and the runtime still use here.
func allowedHere() []uint32 {
	return []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_ARCH_PRCTL, unix.SYS_TIME}
}
