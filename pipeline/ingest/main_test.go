package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"lacuna/pipeline/ingest/sandbox"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be the decoding child too, and children that
// misbehave in the ways that netCDF-C might.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if child, ok := children()[os.Args[1]]; ok {
			if os.Args[1] != "decode" { // it has its file in hand when it misbehaves
				_, _ = unix.Poll([]unix.PollFd{{Fd: socketDescriptor, Events: unix.POLLIN}}, -1)
			}
			os.Exit(child())
		}
	}
	if len(os.Args) == 3 && os.Args[1] == "time-decoding" {
		os.Exit(timeDecoding(os.Args[2]))
	}
	os.Exit(m.Run())
}

// raceEnabled tells whether the race detector is built in. Tests that count
// cells by the million do less then: it makes them ten times slower and finds
// nothing in pure loops.
var raceEnabled = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
})

func children() map[string]func() int {
	return map[string]func() int{
		"decode": func() int { RunChild(os.Stdin, os.Stdout); return 1 },
		"crash": func() int {
			fmt.Fprintln(os.Stderr, "HDF5-DIAG: something\x1b[31m odd")
			_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			select {}
		},
		"kill": func() int { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
		"slow": func() int { // long enough for somebody to kill it
			time.Sleep(500 * time.Millisecond)
			RunChild(os.Stdin, os.Stdout)
			return 1
		},
		"exit": func() int { return 3 },
		"hang": func() int { time.Sleep(time.Hour); return 0 },
		"spin": func() int {
			_ = limitProcess(request{MemoryBytes: 1 << 30, CPUSeconds: 1})
			for spinning := true; spinning; spinning = os.Getpid() > 0 {
			}
			return 0
		},
		"garbage": func() int {
			_, _ = io.Copy(os.Stdout, io.LimitReader(zeros{}, 1<<30))
			return 0
		},
		"boast": func() int { // an invalid header
			_ = writeFrame(os.Stdout, frameHeader, bytes.Repeat([]byte(" "), 10))
			return 0
		},
		"trusting": func() int { return withoutLooking(os.Stdin, os.Stdout) },
		"half": func() int { // dies in the middle of the answer
			var buf bytes.Buffer
			_ = serve(os.Stdin, &buf, sandbox.State{})
			_, _ = os.Stdout.Write(buf.Bytes()[:buf.Len()/2])
			return 0
		},
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// reader returns a Reader whose children are this test binary.
func reader(t testing.TB, child string, edit ...func(*Config)) *Reader {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	for _, e := range edit {
		e(&cfg)
	}
	r, err := NewReader(cfg, []string{self, child})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ncgen makes a NetCDF file of CDL text. Kinds are those of ncgen -k:
// classic, 64-bit-offset, cdf5, nc4, nc7.
func ncgen(t testing.TB, kind, name, cdl string) string {
	t.Helper()
	if _, err := exec.LookPath("ncgen"); err != nil {
		t.Skip("ncgen is not installed: install the package netcdf-bin to run this test")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	cmd := exec.Command("ncgen", "-k", kind, "-o", path)
	cmd.Stdin = bytes.NewReader([]byte(cdl))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ncgen: %v\n%s", err, out)
	}
	return path
}

// fixture makes a NetCDF file of testdata/name.cdl.
func fixture(t testing.TB, kind, name string) string {
	t.Helper()
	cdl, err := os.ReadFile(filepath.Join("testdata", name+".cdl"))
	if err != nil {
		t.Fatal(err)
	}
	return ncgen(t, kind, name+".nc", string(cdl))
}

// mustRead reads a granule through a real child.
func mustRead(t testing.TB, path string, opt Options) Granule {
	t.Helper()
	g, err := reader(t, "decode").Read(t.Context(), path, opt)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wantBad returns the *BadGranule that err must be.
func wantBad(t testing.TB, err error) *BadGranule {
	t.Helper()
	b := (*BadGranule)(nil)
	if !errors.As(err, &b) {
		t.Fatalf("got %v, want a *BadGranule", err)
	}
	return b
}
