//go:build linux && amd64

package systemd_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newJail makes a jail like the unit, with its folders.
func newJail(t *testing.T, unit string) jail {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the user of the service can be become by root only")
	}
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	j := jail{Home: t.TempDir(), Calls: systemCalls(t, settings(string(text))["SystemCallFilter"])}
	if _, err := j.numbers(); err != nil {
		t.Skipf("the headers of the kernel are not installed (Debian package linux-libc-dev): %v", err)
	}
	for _, folder := range []string{"state", "dev"} {
		if err := os.Mkdir(filepath.Join(j.Home, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(j.Home, 0o755), os.Chown(filepath.Join(j.Home, "state"), serviceUser, serviceUser)); err != nil {
		t.Fatal(err)
	}
	return j
}

// copyFile puts a file into the jail, as root's.
func (j jail) copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(j.Home, to), os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// probe tries operations that the unit forbids, and those that a decoding child
// needs to sandbox itself, and prints the result of each.
func probe() int {
	say := func(what string, err error) { fmt.Printf("%s: %v\n", what, err) }
	errno := func(_, _ uintptr, e unix.Errno) error {
		if e == 0 {
			return nil
		}
		return e
	}
	say("write the state", os.WriteFile("/srv/state/probe", nil, 0o644))
	say("write elsewhere", os.WriteFile("/usr/probe", nil, 0o644))
	say("make a network namespace", unix.Unshare(unix.CLONE_NEWNET))
	_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
	say("open a netlink socket", err)
	_, err = unix.Mmap(-1, 0, 4096, unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
	say("map memory to write and run", err)
	say("trace", errno(unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)))
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION: only asks
	say("ask for Landlock", errno(unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)))
	action := uint32(unix.SECCOMP_RET_ERRNO)
	say("ask for seccomp", errno(unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))))
	say("give up privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	say("be nice", unix.Setpriority(unix.PRIO_PROCESS, 0, 19))
	say("limit files", unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}))
	return 0
}

func TestTheUnitSandboxesTheServiceAndLetsAChildSandboxItselfFurther(t *testing.T) {
	for _, unit := range []string{"lacuna.service", "lacuna-once.service"} {
		out, err := newJail(t, unit).run(t)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{
			"write the state: <nil>", "write elsewhere: open /usr/probe: read-only file system", "make a network namespace: operation not permitted",
			"open a netlink socket: address family not supported", "map memory to write and run: operation not permitted", "trace: operation not permitted",
			"ask for seccomp: <nil>", "give up privileges: <nil>", "limit files: <nil>", "be nice: <nil>",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", unit, want, out)
			}
		}
		if strings.Contains(out, "ask for Landlock: operation not permitted") { // a kernel without it gives another error
			t.Errorf("%s keeps children from Landlock:\n%s", unit, out)
		}
	}
}

// furnish puts the program, an archive of six days and a configuration into the
// jail.
func (j jail) furnish(t *testing.T, program string) {
	t.Helper()
	j.copyFile(t, program, "lacuna", 0o755)
	if out, err := exec.Command(program, "simulate", "-o", filepath.Join(j.Home, "archive"), "--days", "6", "--grid", "40x60").CombinedOutput(); err != nil {
		t.Fatalf("simulate: %v\n%s", err, out)
	}
	const config = `state_dir: /srv/state
products_dir: /srv/state/products
web: {listen: "127.0.0.1:0"}
alarms: {command: [/bin/true], check: 100ms, lag: 1h}
publish: {disk: {floor_mib: 1}, kafka: {embedded: true}}
datasets:
  - name: sea
    archive: {dir: /srv/archive, settle: 0s, disk_floor: 1MiB}
`
	if err := os.WriteFile(filepath.Join(j.Home, "lacuna.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantProducts looks for the files of the six days.
func (j jail) wantProducts(t *testing.T, out string) {
	t.Helper()
	products, err := filepath.Glob(filepath.Join(j.Home, "state", "products", "sea", "*", "*", "*.nc"))
	if err != nil || len(products) != 6 {
		t.Errorf("products are %q, %v\n%s", products, err, out)
	}
}

// The whole service works under the restrictions of the units.
func TestTheServiceWorksUnderTheHardening(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := buildWhole(t)
	t.Run("a pass", func(t *testing.T) { testPass(t, program) })
	t.Run("the daemon", func(t *testing.T) { testDaemon(t, program) })
}

// buildWhole builds the program with the decoder that it carries, as make build does.
func buildWhole(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, decoder, overlay := filepath.Join(dir, "lacuna"), filepath.Join(dir, "decoder"), filepath.Join(dir, "overlay.json")
	place, err := filepath.Abs("../daemon/cmd/lacuna/decoder")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {place: decoder}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"build", "-o", decoder, "../pipeline/ingest/cmd/decoder"},
		{"build", "-ldflags", "-s -w", "-tags", "decoder", "-overlay", overlay, "-o", program, "../daemon/cmd/lacuna"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
	}
	return program
}

// testPass tries decoding children, filling, the ledger, products, the engine.
func testPass(t *testing.T, program string) {
	j := newJail(t, "lacuna-once.service")
	j.furnish(t, program)
	out, err := j.run(t, "/srv/lacuna", "once", "--config", "/srv/lacuna.yaml")
	if err != nil || !strings.Contains(out, "6 products, 0 granules set aside, 0 unfinished") {
		t.Errorf("once: %v\n%s", err, out)
	}
	j.wantProducts(t, out)
	// Its exit status is that of a machine without a page.
	if out, _ := j.run(t, "/srv/lacuna", "check", "--online", "--config", "/srv/lacuna.yaml"); !strings.Contains(out, "in a program of its own") {
		t.Errorf("the decoder that the program carries does not run under the restrictions of the unit:\n%s", out)
	}
	library := os.Getenv("LACUNA_ONNXRUNTIME")
	if library == "" {
		t.Log("without $LACUNA_ONNXRUNTIME the engine is not tried")
		return
	}
	j.copyFile(t, library, "libonnxruntime.so", 0o644) // beside the program
	if out, err := j.run(t, "/srv/lacuna", "engines"); err != nil || !strings.Contains(out, "/srv/libonnxruntime.so") {
		t.Errorf("engines: %v\n%s", err, out)
	}
}

// testDaemon tries the parts beyond a pass: the page, Kafka, alarms with their
// command, and an end by SIGTERM.
func testDaemon(t *testing.T, program string) {
	j := newJail(t, "lacuna.service")
	j.furnish(t, program)
	if out, err := j.run(t, "/srv/lacuna", "version"); err != nil { // skips where there are no namespaces
		t.Fatalf("version: %v\n%s", err, out)
	}
	cmd := j.command(t, "/srv/lacuna", "run", "--config", "/srv/lacuna.yaml", "--log", "json")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }) // many times the usual duration
	defer limit.Stop()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	alarm := make(chan struct{})
	ring := sync.OnceFunc(func() { close(alarm) })
	for lines := bufio.NewScanner(log); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		var line struct{ Msg, URL, Alarm string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch {
		case line.Msg == "alarm" && line.Alarm == "lag":
			ring() // the command has run
		case line.Msg == "status page served":
			go func() {
				awaitDeliveries(line.URL)
				<-alarm
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("run: %v\n%s", err, &said)
	}
	ring() // for the goroutine, where none came
	j.wantProducts(t, said.String())
}

// awaitDeliveries returns when the service is ready and six products wait for
// nobody, or after a minute.
func awaitDeliveries(page string) {
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get(page + "status.json")
		if err != nil {
			continue
		}
		var s struct {
			Ready    bool
			Products []struct{}
			Sinks    []struct{ Waiting int }
		}
		err = json.NewDecoder(answer.Body).Decode(&s)
		_ = answer.Body.Close()
		waiting := 0
		for _, sink := range s.Sinks {
			waiting += sink.Waiting
		}
		if err == nil && s.Ready && len(s.Products) == 6 && len(s.Sinks) == 2 && waiting == 0 {
			return
		}
	}
}
