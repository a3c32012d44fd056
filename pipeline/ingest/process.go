package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"lacuna/pipeline/ingest/sandbox"

	"golang.org/x/sys/unix"
)

// A process is a child that waits for its file. It decodes one and ends.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // takes the request
	socket *os.File       // takes the descriptor of the file
	stdout io.Reader
	stderr *firstBytes
	kill   context.CancelFunc
}

// startProcess starts a child. It must be waited for.
func startProcess(argv []string) (*process, error) { return startProgram(programOf(argv), argv) }

// startProgram starts a program as a child, under the name of argv.
func startProgram(path string, argv []string) (*process, error) {
	// A program that forgets to call RunChild would start copies of itself
	// without end.
	if os.Getenv(sandbox.Mark) != "" {
		return nil, fmt.Errorf("start decoding child %q: this process is a decoding child itself and should have called RunChild", argv)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	ctx, kill := context.WithCancel(context.Background())
	p := &process{cmd: exec.CommandContext(ctx, path), socket: ours, stderr: &firstBytes{limit: 4 << 10}, kill: kill}
	p.cmd.Args = argv
	p.cmd.Stderr = p.stderr
	p.cmd.ExtraFiles = []*os.File{theirs} // becomes socketDescriptor
	p.cmd.Env = childEnv()
	p.cmd.Dir = "/"               // netCDF-C looks for settings in the working folder
	p.cmd.WaitDelay = time.Second // a grandchild may keep standard error open
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		p.stdout, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		widen(p.stdout)
		err = p.cmd.Start()
	}
	if err != nil {
		kill()
		_ = ours.Close()
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	return p, nil
}

// hand gives the child its request and its file.
func (p *process) hand(f *os.File, req request) error {
	question, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	if _, err := p.stdin.Write(question); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	if err := p.stdin.Close(); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	// Fd would make f block; the raw connection does not.
	raw, err := f.SyscallConn()
	if err != nil {
		return fmt.Errorf("send descriptor: %w", err)
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		sent = unix.Sendmsg(int(p.socket.Fd()), []byte{1}, unix.UnixRights(int(fd)), nil, unix.MSG_NOSIGNAL)
	})
	if err == nil {
		err = sent
	}
	if err != nil {
		return fmt.Errorf("send descriptor: %w", err)
	}
	return nil
}

// wait returns when the child has ended, and why.
func (p *process) wait() error {
	err := p.cmd.Wait()
	p.kill()
	_ = p.stdin.Close()
	_ = p.socket.Close()
	return err
}

// spareAge is how long a spare child waits for the next file: the files of a
// backlog follow one another within seconds, those of a live feed do not.
const spareAge = 5 * time.Second

// A standby keeps one spare child ready for a reader that reads often. Starting
// a process and loading netCDF-C with the forty libraries behind it takes as
// long as decoding half a granule; the spare does it while another child
// decodes. Each child still decodes one file only.
type standby struct {
	argv []string

	mu    sync.Mutex // guards the fields below
	taken int
	spare *process
	timer *time.Timer
}

// take returns a child, and whether it has been waiting.
func (s *standby) take() (p *process, waited bool, err error) {
	s.mu.Lock()
	p = s.spare
	s.spare = nil
	s.taken++
	if p != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	if p != nil {
		return p, true, nil
	}
	p, err = startProcess(s.argv)
	return p, false, err
}

// refill starts a spare child, unless there is one already or only one file has
// been read so far: a reader of two files is likely to read a third. A failure
// to start shows when the child is needed.
func (s *standby) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare != nil || s.taken < 2 {
		return
	}
	p, err := startProcess(s.argv)
	if err != nil {
		return
	}
	s.spare = p
	s.timer = time.AfterFunc(spareAge, func() { s.dismiss(p) })
}

// dismiss ends a spare child that was not used in time.
func (s *standby) dismiss(p *process) {
	s.mu.Lock()
	idle := s.spare == p
	if idle {
		s.spare = nil
	}
	s.mu.Unlock()
	if idle {
		p.kill()
		_ = p.wait()
	}
}

// childEnv keeps the secrets of the daemon's environment from a process that
// reads hostile files, and the settings of its user from netCDF-C. HDF5 need
// not lock a file that is never written in place: some file systems cannot.
// Huge pages save the child a tenth of its time, most of it page faults. The
// program itself may have been loaded by way of LD_LIBRARY_PATH, so that
// variable is passed on.
func childEnv() []string {
	env := []string{
		sandbox.Mark + "=1", "GOTRACEBACK=none", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
		"HDF5_USE_FILE_LOCKING=FALSE", "HDF5_PLUGIN_PATH=", "HDF5_PLUGIN_PRELOAD=::", // no plug-ins
		"NCRCENV_IGNORE=1", // no settings of netCDF-C
	}
	if libraries, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		env = append(env, "LD_LIBRARY_PATH="+libraries)
	}
	return env
}

// pipeBytes is the largest pipe that Linux gives an unprivileged process.
const pipeBytes = 1 << 20

// widen enlarges the pipe, which saves a context switch for every 64 KiB.
// A pipe that stays narrow is merely slower.
func widen(pipe io.Reader) {
	if f, ok := pipe.(*os.File); ok {
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
		}
	}
}

// firstBytes keeps the first bytes written to it and forgets the rest.
type firstBytes struct {
	limit int
	kept  []byte
}

func (b *firstBytes) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), b.limit-len(b.kept))]...)
	return len(p), nil
}

// String returns the kept bytes as one printable line.
func (b *firstBytes) String() string {
	line := strings.Join(strings.Fields(string(b.kept)), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
}
