package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be a process in the sandbox, which reports the
// operations that worked.
func TestMain(m *testing.M) {
	if os.Getenv(Mark) != "" {
		os.Exit(confined(os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

// attempts are the errors of the operations that a process tried; empty: it worked.
type attempts struct {
	State    State
	Open     []string // one for each thread
	Connect  string
	Exec     string
	Signal   string // a signal to the parent
	Code     string // mapping executable memory
	Fork     string
	Write    string
	Tracing  string
	FileMode string
}

// confined tries the forbidden operations, with one layer or both.
func confined(layers, secret string) int {
	listener := os.Args[3]
	var a attempts
	if layers == "both" {
		state, err := Restrict()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		a.State = state
	}
	a.Open = openOnThreads(secret, 4)
	if layers == "both" {
		_, errno := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		a.Connect = message(errno)
		a.Exec = message(unix.Exec("/bin/true", []string{"true"}, nil))
		a.Signal = message(unix.Kill(os.Getppid(), 0))
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		a.Code = message(err)
		_, _, forked := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		a.Fork = number(forked)
		a.Tracing = message(unix.PtraceAttach(os.Getppid()))
		a.FileMode = message(unix.Chmod(secret, 0o777))
	} else {
		_, err := net.Dial("tcp", listener)
		a.Connect = message(err)
	}
	a.Write = message(os.WriteFile(secret+".copy", nil, 0o600))
	out, err := json.Marshal(a)
	if err != nil {
		return 1
	}
	if _, err := os.Stdout.Write(out); err != nil {
		return 1
	}
	return 0
}

// openOnThreads opens a file on n threads that live at the same time.
func openOnThreads(path string, n int) []string {
	ends := make([]string, n)
	var all, open sync.WaitGroup
	all.Add(n)
	for i := range n {
		open.Go(func() {
			runtime.LockOSThread()
			all.Done()
			all.Wait()
			_, err := unix.Open(path, unix.O_RDONLY, 0)
			ends[i] = message(err)
		})
	}
	open.Wait()
	return ends
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func number(errno unix.Errno) string {
	if errno == 0 {
		return ""
	}
	return errno.Error()
}

// runConfined runs this binary in the sandbox.
func runConfined(t *testing.T, layers string) attempts {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	cmd := exec.Command(self, layers, secret, listener.Addr().String())
	cmd.Env = []string{Mark + "=1"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var a attempts
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return a
}

func TestLandlockAloneKeepsEveryThreadFromFilesAndTheNetwork(t *testing.T) {
	if abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 || abi < 4 {
		t.Skipf("this kernel has Landlock %d, connections take 4: %v", int(abi), errno)
	}
	a := runConfined(t, "landlock")
	for i, end := range append(a.Open, a.Write, a.Connect) {
		if !strings.Contains(end, "permission denied") {
			t.Errorf("attempt %d ended with %q", i, end)
		}
	}
}

func TestBothLayersLeaveNothingButOpenDescriptors(t *testing.T) {
	a := runConfined(t, "both")
	if !a.State.Seccomp {
		t.Skip("this kernel does not limit system calls")
	}
	for i, end := range a.Open {
		if !strings.Contains(end, "not permitted") {
			t.Errorf("open on thread %d ended with %q", i, end)
		}
	}
	for name, end := range map[string]string{
		"socket": a.Connect, "exec": a.Exec, "signal": a.Signal, "code": a.Code, "fork": a.Fork,
		"write": a.Write, "trace": a.Tracing, "chmod": a.FileMode,
	} {
		if !strings.Contains(end, "not permitted") {
			t.Errorf("%s ended with %q", name, end)
		}
	}
}

func TestStateSaysWhatIsLacking(t *testing.T) {
	tests := []struct {
		state State
		want  string
		tight bool
	}{
		{State{Landlock: 4, Seccomp: true}, "confined by Landlock and seccomp", true},
		{State{Seccomp: true}, "confined by seccomp; this kernel gives no Landlock", false},
		{State{Opens: true, Connects: true}, "not confined; this kernel gives no Landlock and no seccomp; it could open files, make sockets", false},
	}
	for _, tt := range tests {
		if got := tt.state.String(); got != tt.want || tt.state.Tight() != tt.tight {
			t.Errorf("%+v: %q, tight %v", tt.state, got, tt.state.Tight())
		}
	}
}

// The kernel takes a filter only if all of its jumps stay inside.
func TestFilterJumpsForwardAndEnds(t *testing.T) {
	f := Filter(1)
	for i, step := range f {
		if step.Code&7 == unix.BPF_JMP && i+1+int(max(step.Jt, step.Jf)) >= len(f) {
			t.Errorf("step %d jumps out", i)
		}
	}
	if last := f[len(f)-1]; last.Code != unix.BPF_RET|unix.BPF_K || last.K != deny(unix.EPERM) {
		t.Errorf("a call that is not on the list ends with %+v", last)
	}
	if len(f) > 4096 {
		t.Errorf("%d steps, the kernel takes 4096", len(f))
	}
}
