package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Filter returns the program by which the kernel judges each system call of
// process pid: a list of those that are allowed, all others fail with EPERM.
//
// The list has the calls of the Go runtime, glibc and HDF5 while they compute on
// memory and write to an open descriptor. Opening a file, making a socket,
// starting a program, looking into another process and mapping code are not in
// it. Some are allowed with one argument only.
func Filter(pid int) []unix.SockFilter {
	var p program
	p.load(offsetArch)
	p.unless(auditArch, kill)
	p.load(offsetNumber)
	for _, nr := range append(allowed(), allowedHere()...) {
		p.when(nr, unix.SECCOMP_RET_ALLOW)
	}
	// glibc starts threads by clone where the kernel does not know clone3,
	// whose arguments a filter cannot see.
	p.when(unix.SYS_CLONE3, deny(unix.ENOSYS))
	p.whenBits(unix.SYS_CLONE, argument(0), unix.CLONE_THREAD, true)
	p.whenBits(unix.SYS_MMAP, argument(2), unix.PROT_EXEC, false)
	p.whenBits(unix.SYS_MPROTECT, argument(2), unix.PROT_EXEC, false)
	p.whenEqual(unix.SYS_TGKILL, argument(0), uint32(pid)) // the runtime preempts its own threads
	p.whenEqual(unix.SYS_PRLIMIT64, argument(0), 0)        // our own limits
	p.whenEqual(unix.SYS_PRCTL, argument(0), unix.PR_SET_VMA)
	p.end(deny(unix.EPERM))
	return p
}

// allowed returns the calls that every machine has.
func allowed() []uint32 {
	return []uint32{
		// Descriptors that are open.
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_LSEEK, unix.SYS_CLOSE,
		unix.SYS_FSTAT, unix.SYS_FCNTL, unix.SYS_RECVMSG, unix.SYS_PPOLL,
		// Waiting.
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_FUTEX,
		unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_SCHED_YIELD,
		unix.SYS_SCHED_GETAFFINITY, unix.SYS_RESTART_SYSCALL,
		// Memory; mmap and mprotect are below.
		unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK,
		// Threads and signals.
		unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SET_TID_ADDRESS, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_SIGALTSTACK,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_MEMBARRIER,
		unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
		// Information about this process.
		unix.SYS_GETRANDOM, unix.SYS_GETRUSAGE, unix.SYS_SYSINFO, unix.SYS_UNAME,
	}
}

// Offsets in struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
)

// argument returns the offset of the lower half of argument i, on the little
// endian machines that this is built for.
func argument(i uint32) uint32 { return 16 + 8*i }

// kill ends a process that calls by the convention of another architecture,
// where the same number is another system call.
const kill = unix.SECCOMP_RET_KILL_PROCESS

func deny(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// program is a filter in the making. The accumulator holds the number of the
// call between its steps.
type program []unix.SockFilter

func (p *program) add(code uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (p *program) end(verdict uint32) { p.add(unix.BPF_RET|unix.BPF_K, verdict, 0, 0) }

const equal, hasBits = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K

// unless ends with verdict where the accumulator is not k.
func (p *program) unless(k, verdict uint32) {
	p.add(equal, k, 1, 0)
	p.end(verdict)
}

// when ends with verdict where the accumulator is nr.
func (p *program) when(nr, verdict uint32) {
	p.add(equal, nr, 0, 1)
	p.end(verdict)
}

// whenEqual allows call nr where the word at offset is k.
func (p *program) whenEqual(nr, offset, k uint32) {
	p.add(equal, nr, 0, 4)
	p.load(offset)
	p.unless(k, deny(unix.EPERM))
	p.end(unix.SECCOMP_RET_ALLOW)
}

// whenBits allows call nr where bits are set in the word at offset, or, with
// set false, where they are not.
func (p *program) whenBits(nr, offset, bits uint32, set bool) {
	p.add(equal, nr, 0, 4)
	p.load(offset)
	if set {
		p.add(hasBits, bits, 1, 0)
	} else {
		p.add(hasBits, bits, 0, 1)
	}
	p.end(deny(unix.EPERM))
	p.end(unix.SECCOMP_RET_ALLOW)
}

// install applies filter to all threads of this process.
func install(filter []unix.SockFilter) error {
	law := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	stuck, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&law)))
	switch {
	case errno != 0:
		return errno
	case stuck != 0: // id of a thread that cannot take the filter
		return unix.ESRCH
	}
	return nil
}
