package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// templateOf returns the process id of the template that a reader has; 0: it has none.
func templateOf(r *Reader) int {
	r.standby.mu.Lock()
	defer r.standby.mu.Unlock()
	if r.standby.template == nil {
		return 0
	}
	return r.standby.template.cmd.Process.Pid
}

func TestATemplateThatWasKilledIsReplaced(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	r := reader(t, "decode")
	t.Cleanup(r.standby.dismiss)
	var before int
	for range 3 {
		g, err := r.Read(t.Context(), path, Options{})
		must(t, err)
		checkPlankton(t, g)
		now := templateOf(r)
		if now == 0 || now == before {
			t.Fatalf("the template is process %d, after %d was killed", now, before)
		}
		before = now
		must(t, unix.Kill(now, unix.SIGKILL))
		r.standby.mu.Lock()
		if spare := r.standby.spare; spare != nil { // made by the template that was killed
			r.standby.spare = nil
			spare.kill()
			_ = spare.wait()
		}
		r.standby.mu.Unlock()
	}
}

// Copies have their libraries at the same addresses: what a file has learned of them in
// an attempt that failed must be of no use to the next.
func TestATemplateWhoseCopyDiedIsNotCopiedAgain(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	for _, child := range []string{"crash", "exit", "garbage"} {
		r := reader(t, child)
		_, err := r.Read(t.Context(), path, Options{})
		wantBad(t, err)
		if pid := templateOf(r); pid != 0 {
			t.Errorf("after a child of kind %s the template is still there", child)
		}
	}
}

// A program that starts the decoder, and is not one, cannot be a template.
func TestAProgramThatCannotBeATemplateDecodesAsItIs(t *testing.T) {
	path := fixture(t, "nc4", "plankton")
	self, err := os.Executable()
	must(t, err)
	script := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\n"+self+" decode\nexit $?\n"), 0o700))
	t.Cleanup(func() { stand.Store(nil) })
	DecodeBy([]string{self, "exit"}, func() (string, error) { return script, nil })
	for name, argv := range map[string][]string{
		"in place of our own": {self, "exit"}, "by itself": {script}, "by the shell": {"/bin/sh", "-c", `"$0" decode; exit $?`, self},
	} {
		r, err := NewReader(DefaultConfig(), argv)
		must(t, err)
		g, err := r.Read(t.Context(), path, Options{})
		if err != nil {
			t.Errorf("a program %s: %v", name, err)
			continue
		}
		checkPlankton(t, g)
		if templateOf(r) != 0 {
			t.Errorf("a program %s is a template", name)
		}
	}
}

// descriptorsOf returns what a process has open, by number, without what its Go runtime
// has opened for itself.
func descriptorsOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(folder)
	must(t, err)
	open := map[string]string{}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && !strings.HasPrefix(to, "anon_inode:") {
			open[e.Name()] = to
		}
	}
	return open
}

// A copy has its own connections, not those of the template, and the daemon is its
// parent, which can wait for it.
func TestACopyHasNothingOfItsTemplate(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	tmpl, err := startTemplate(self, []string{self, "hang"})
	must(t, err)
	defer tmpl.end()
	for range 2 {
		p, err := tmpl.copy()
		must(t, err)
		wrong := []string{"not looked at"}
		for begun := time.Now(); len(wrong) > 0 && time.Since(begun) < 2*time.Minute; time.Sleep(time.Millisecond) { // until it has begun
			theirs, own := descriptorsOf(t, tmpl.cmd.Process.Pid), descriptorsOf(t, p.child.Pid)
			wrong = nil
			for fd, to := range own {
				if inherited := fd > "3" || len(fd) > 1; (theirs[fd] == to) != inherited {
					wrong = append(wrong, fmt.Sprintf("descriptor %s of the copy is %s, that of the template %q", fd, to, theirs[fd]))
				}
			}
		}
		if len(wrong) > 0 {
			t.Error(wrong)
		}
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.child.Pid), "status"))
		must(t, err)
		if !strings.Contains(string(status), "\nPPid:\t"+strconv.Itoa(os.Getpid())+"\n") {
			t.Errorf("the parent of the copy is not this process:\n%s", status)
		}
		p.kill()
		if err := p.wait(); err == nil {
			t.Error("a killed copy has ended well")
		}
	}
}
