//go:build linux && amd64

package systemd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// serviceUser is the first of the users that systemd makes for a service.
const serviceUser = 61184

// jailMark is set in the environment of a process that is to jail itself.
const jailMark = "LACUNA_TEST_JAIL"

// jail is the sandbox of the unit, as far as namespaces and a filter of system
// calls make it without systemd, which is rarely the first process of a test
// machine. Home is bound to /srv, and nothing else can be written.
type jail struct {
	Home  string          `json:"home"`
	Calls map[string]bool `json:"calls"` // system calls that the unit allows
	Args  []string        `json:"args"`  // program and arguments; empty: probe
}

func TestMain(m *testing.M) {
	if text := os.Getenv(jailMark); text != "" {
		os.Exit(enter(text))
	}
	os.Exit(m.Run())
}

// run runs a program in the jail and returns its output.
func (j jail) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := j.command(t, args...).CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("no namespaces can be made here, which takes root: %v", err)
	}
	return string(out), err
}

// command is a program that will run in the jail.
func (j jail) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	j.Args = args
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{jailMark + "=" + string(text), "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	both := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: serviceUser, HostID: serviceUser, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{ // PrivateUsers=: root and the service, nobody else
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID,
		UidMappings: both, GidMappings: both, GidMappingsEnableSetgroups: true, Pdeathsig: unix.SIGKILL,
	}
	return cmd
}

// enter makes the jail and becomes the program.
func enter(text string) int {
	runtime.LockOSThread() // capabilities and filters are those of a thread
	var j jail
	err := json.Unmarshal([]byte(text), &j)
	for _, step := range []func() error{j.mounts, j.drop, j.filter} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "jail:", err)
		return 99
	}
	if len(j.Args) == 0 {
		return probe()
	}
	env := []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/srv/state"}
	fmt.Fprintln(os.Stderr, "jail: start", j.Args[0], unix.Exec(j.Args[0], j.Args, env))
	return 98
}

// mounts leaves everything read-only but the state, as ProtectSystem=strict,
// ProtectHome, PrivateTmp, PrivateDevices, ProtectProc and ProcSubset do.
func (j jail) mounts() error {
	steps := []error{
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(j.Home, "/srv", "", unix.MS_BIND, ""),
		unix.Mount("/srv/state", "/srv/state", "", unix.MS_BIND, ""),
	}
	devices := filepath.Join(j.Home, "dev")
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		place := filepath.Join(devices, name)
		steps = append(steps, os.WriteFile(place, nil, 0o644), unix.Mount("/dev/"+name, place, "", unix.MS_BIND, ""))
	}
	// The temporary folder is hidden after the binds from it.
	steps = append(steps, unix.Mount(devices, "/dev", "", unix.MS_BIND|unix.MS_REC, ""))
	for _, folder := range []string{"/home", "/root", "/tmp", "/var/tmp"} {
		steps = append(steps, unix.Mount("none", folder, "tmpfs", 0, "mode=1777"))
	}
	steps = append(steps,
		unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}),
		unix.MountSetattr(-1, "/srv/state", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}),
		unix.MountSetattr(-1, "/tmp", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}),
		unix.MountSetattr(-1, "/var/tmp", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=invisible,subset=pid"); err != nil {
		// A container that hides parts of /proc allows no other; it stays read-only.
		fmt.Fprintln(os.Stderr, "jail: /proc stays as it is:", err)
	}
	return errors.Join(append(steps, os.Chdir("/"))...)
}

// drop gives up every capability and becomes the user of the service.
func (j jail) drop() error {
	const last = 63 // more than any kernel has: those that it does not know are refused
	for c := uintptr(0); c <= last; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	unix.Umask(0o022)
	return errors.Join(syscall.Setgroups(nil), syscall.Setresgid(serviceUser, serviceUser, serviceUser),
		syscall.Setresuid(serviceUser, serviceUser, serviceUser), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// callNumber finds the numbers of system calls in the headers of the kernel.
var callNumber = regexp.MustCompile(`(?m)^#define __NR_(\w+) (\d+)$`)

// numbers returns the numbers of the calls that are allowed.
func (j jail) numbers() (map[string]uint32, error) {
	header, err := os.ReadFile("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
	if err != nil {
		header, err = os.ReadFile("/usr/include/asm/unistd_64.h")
	}
	if err != nil {
		return nil, err
	}
	all := map[string]uint32{}
	for _, m := range callNumber.FindAllStringSubmatch(string(header), -1) {
		n, err := strconv.ParseUint(m[2], 10, 32)
		if err != nil {
			return nil, err
		}
		all[m[1]] = uint32(n)
	}
	return all, nil
}

// filter allows the calls of the unit and answers the others with EPERM. It
// also checks the arguments that RestrictAddressFamilies, RestrictNamespaces
// and MemoryDenyWriteExecute check.
func (j jail) filter() error {
	numbers, err := j.numbers()
	if err != nil {
		return err
	}
	const x8664 = 0xc000003e // AUDIT_ARCH_X86_64
	refuse := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(how uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	argument := func(n uint32) unix.SockFilter { return load(16 + 8*n) } // its lower half
	and := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: k}
	}
	program := []unix.SockFilter{load(4), jump(unix.BPF_JEQ, x8664, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS), load(0)}
	when := func(call string, do ...unix.SockFilter) {
		do = append(do, load(0))
		program = append(append(program, jump(unix.BPF_JEQ, numbers[call], 0, uint8(len(do)))), do...)
	}
	when("socket", argument(0), jump(unix.BPF_JEQ, unix.AF_UNIX, 3, 0), jump(unix.BPF_JEQ, unix.AF_INET, 2, 0),
		jump(unix.BPF_JEQ, unix.AF_INET6, 1, 0), answer(refuse(unix.EAFNOSUPPORT)))
	const namespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUSER | unix.CLONE_NEWUTS | unix.CLONE_NEWTIME
	when("clone", argument(0), jump(unix.BPF_JSET, namespaces, 0, 1), answer(refuse(unix.EPERM)))
	when("unshare", argument(0), jump(unix.BPF_JSET, namespaces, 0, 1), answer(refuse(unix.EPERM)))
	when("setns", answer(refuse(unix.EPERM)))
	when("clone3", answer(refuse(unix.ENOSYS))) // its flags lie in memory; systemd does the same
	const both = unix.PROT_WRITE | unix.PROT_EXEC
	when("mmap", argument(2), and(both), jump(unix.BPF_JEQ, both, 0, 1), answer(refuse(unix.EPERM)))
	for _, call := range []string{"mprotect", "pkey_mprotect"} {
		when(call, argument(2), jump(unix.BPF_JSET, unix.PROT_EXEC, 0, 1), answer(refuse(unix.EPERM)))
	}
	for name, number := range numbers {
		if j.Calls[name] {
			program = append(program, jump(unix.BPF_JEQ, number, 0, 1), answer(unix.SECCOMP_RET_ALLOW))
		}
	}
	program = append(program, answer(refuse(unix.EPERM)))
	loaded := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&loaded)), 0, 0)
}
