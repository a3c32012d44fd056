package ingest

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"lacuna/pipeline/ingest/sandbox"

	"golang.org/x/sys/unix"
)

// A template is a process that is copied for every file. It has loaded netCDF-C and
// the forty libraries behind it and has initialised them, which takes as long as
// decoding half a granule; a copy takes a millisecond. A template is given no file: a
// copy is as fresh as a process of its own.
//
// All copies have their libraries at the same addresses. A hostile file that failed
// to take over a decoder must not be able to try again with what it has learned,
// so whoever sees a copy end badly takes another template.
type template struct {
	cmd    *exec.Cmd
	stderr *firstBytes

	mu     sync.Mutex // held while a copy is made
	socket *os.File   // see sandbox.Template
}

// copyTimeout bounds the start of a template and its first copy, which take tens of
// milliseconds.
const copyTimeout = 30 * time.Second

// startTemplate starts a program as a template, under the name of argv. It must be
// ended.
func startTemplate(path string, argv []string) (*template, error) {
	// A program that forgets to call RunChild would start copies of itself
	// without end.
	if os.Getenv(sandbox.Mark) != "" {
		return nil, fmt.Errorf("start decoding child %q: this process is a decoding child itself and should have called RunChild", argv)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	defer theirs.Close()
	t := &template{cmd: exec.Command(path), stderr: &firstBytes{limit: 4 << 10}, socket: ours}
	t.cmd.Args = argv
	t.cmd.Stderr = t.stderr
	t.cmd.ExtraFiles = []*os.File{theirs}
	t.cmd.Env = childEnv()
	t.cmd.Dir = "/"               // netCDF-C looks for settings in the working folder
	t.cmd.WaitDelay = time.Second // a grandchild may keep standard error open
	if err := t.cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	return t, nil
}

// socketPair returns the two ends of a connection; a read of ours may have a deadline.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.SetNonblock(pair[0], true) // for os.NewFile, by which it may have deadlines
	return os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket"), nil
}

// copy makes a child of the template, which must be waited for.
func (t *template) copy() (*process, error) {
	p, theirs, err := newProcess()
	if err != nil {
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	defer closeAll(theirs)
	pid, err := t.ask(theirs)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("start decoding child: %w", err)
	}
	p.began(pid)
	return p, nil
}

// ask has the template copy itself and returns the process id of the copy.
func (t *template) ask(files []*os.File) (pid int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	numbers := make([]int, len(files))
	for i, f := range files {
		numbers[i] = int(f.Fd()) // which makes f block, as the child expects
	}
	if err := sendDescriptors(t.socket, numbers...); err != nil {
		return 0, err
	}
	if err := t.socket.SetReadDeadline(time.Now().Add(copyTimeout)); err != nil {
		return 0, err
	}
	var answer [4]byte
	if _, err := io.ReadFull(t.socket, answer[:]); err != nil {
		return 0, fmt.Errorf("it does not answer: %w", err)
	}
	pid = int(int32(binary.NativeEndian.Uint32(answer[:])))
	if pid <= 0 {
		return 0, unix.Errno(-pid)
	}
	return pid, nil
}

// sendDescriptors sends descriptors through a socket, with one byte.
func sendDescriptors(socket *os.File, numbers ...int) error {
	raw, err := socket.SyscallConn() // Fd would make it block
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		sent = unix.Sendmsg(int(fd), []byte{1}, unix.UnixRights(numbers...), nil, unix.MSG_NOSIGNAL)
	})
	if err == nil {
		err = sent
	}
	return err
}

// end ends the template; its copies go on. It returns what the template has said.
func (t *template) end() string {
	_ = t.socket.Close()
	_ = t.cmd.Process.Kill() // it may not be listening
	_ = t.cmd.Wait()
	return t.stderr.String()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
