package ingest

import (
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
	stdin  io.WriteCloser // takes the request
	stdout *os.File
	stderr *firstBytes
	socket *os.File // takes the descriptor of the file

	complaints *os.File // end of its standard error
	heard      sync.WaitGroup
	child      *os.Process
	state      *os.ProcessState // once it has ended
}

// startProgram starts a program as a child, under the name of argv. It must be waited
// for.
func startProgram(path string, argv []string) (*process, error) {
	p, theirs, err := newProcess()
	if err != nil {
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	defer closeAll(theirs)
	cmd, err := command(path, argv)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = theirs[0], theirs[1], theirs[2], theirs[socketDescriptor:]
		err = cmd.Start()
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	p.began(cmd.Process)
	return p, nil
}

// command returns the command of a program that is a child or a template.
func command(path string, argv []string) (*exec.Cmd, error) {
	// A program that forgets to call RunChild would start copies of itself
	// without end.
	if os.Getenv(sandbox.Mark) != "" {
		return nil, fmt.Errorf("%q: this process is a decoding child itself and should have called RunChild", argv)
	}
	cmd := exec.Command(path)
	cmd.Args = argv
	cmd.Env = childEnv()
	cmd.Dir = "/" // netCDF-C looks for settings in the working folder
	return cmd, nil
}

// newProcess returns a process without a child, and the descriptors 0 to 3 of it.
func newProcess() (p *process, theirs []*os.File, err error) {
	p = &process{stderr: &firstBytes{limit: 4 << 10}}
	var ours [4]*os.File
	theirs = make([]*os.File, len(ours))
	theirs[0], ours[0], err = os.Pipe()
	for i := 1; i <= 2 && err == nil; i++ {
		ours[i], theirs[i], err = os.Pipe()
	}
	if err == nil {
		ours[3], theirs[socketDescriptor], err = socketPair()
	}
	p.stdin, p.stdout, p.complaints, p.socket = ours[0], ours[1], ours[2], ours[3]
	if err != nil {
		closeAll(theirs) // closing what was not opened is an error, and no harm
		p.close()
		return nil, nil, err
	}
	widen(p.stdout)
	return p, theirs, nil
}

// began says that the child is there.
func (p *process) began(child *os.Process) {
	p.child = child
	p.heard.Go(func() { _, _ = io.Copy(p.stderr, p.complaints) })
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
	err = raw.Control(func(fd uintptr) { sent = sendDescriptors(p.socket, int(fd)) })
	if err == nil {
		err = sent
	}
	if err != nil {
		return fmt.Errorf("send descriptor: %w", err)
	}
	return nil
}

// kill ends the child at once.
func (p *process) kill() { _ = p.child.Kill() } // an error: it has ended

// wait returns when the child has ended, and why.
func (p *process) wait() (err error) {
	p.state, err = p.child.Wait()
	// A grandchild may keep standard error open.
	_ = p.complaints.SetReadDeadline(time.Now().Add(time.Second))
	p.heard.Wait()
	p.close()
	if err == nil && !p.state.Success() {
		err = &exec.ExitError{ProcessState: p.state}
	}
	return err
}

// close closes our ends of the connections to the child.
func (p *process) close() {
	_ = p.stdin.Close()
	closeAll([]*os.File{p.stdout, p.complaints, p.socket})
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
func widen(pipe *os.File) {
	if raw, err := pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
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
