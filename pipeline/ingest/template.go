package ingest

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	socket *os.File // see sandbox.Template; one copy at a time
}

// copyTimeout bounds the start of a template and its first copy, which take tens of
// milliseconds.
const copyTimeout = 10 * time.Second

// startTemplate starts a program as a template, under the name of argv. It must be
// ended.
func startTemplate(path string, argv []string) (*template, error) {
	cmd, err := command(path, argv)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.Env = append(cmd.Env, sandbox.Template+"=1")
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	return &template{cmd: cmd, socket: ours}, nil
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
		return nil, err
	}
	defer closeAll(theirs)
	pid, err := t.ask(theirs)
	if err != nil {
		p.close()
		return nil, err
	}
	child, err := os.FindProcess(pid)
	if err == nil {
		err = waitable(pid)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.began(child)
	return p, nil
}

// waitable returns an error for a process that is not a child of this one: its template
// was started by another program in between. Such a copy ends as its connections do.
func waitable(pid int) error {
	return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
}

// ask has the template copy itself and returns the process id of the copy.
func (t *template) ask(files []*os.File) (pid int, err error) {
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

// end ends the template; its copies go on.
func (t *template) end() {
	_ = t.socket.Close()
	_ = t.cmd.Process.Kill() // it may not be listening
	_ = t.cmd.Wait()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
